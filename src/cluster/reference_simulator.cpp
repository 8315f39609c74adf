#include "cluster/reference_simulator.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/check.h"

namespace forerun::cluster {
namespace {

constexpr int64_t kFirstThreshold = 3600'000'000'000;    // GPU nanoseconds, as 2d-las has by default
constexpr int64_t kSecondThreshold = 36000'000'000'000;  // GPU nanoseconds

enum class State : uint8_t { absent, held_back, waiting, running, done };

struct Present {
  JobIndex index = 0;
  int64_t gpus = 0, arrival = 0, deadline = 0, priority = 0;
  std::vector<int64_t> truth, predicted;  // by type
  State state = State::absent;
  bool ran = false;
  size_t type = 0;
  int64_t since = 0, end = 0, predicted_end = 0, restart = 0;
  int64_t held = 0, useful = 0;    // before this run; one GPU type where jobs are stopped
  std::vector<size_t> after;       // jobs that must have ended
  std::vector<std::string> lanes;  // whose quotas it counts against
  std::vector<int64_t> weights;    // by lane
};

class Plain {
 public:
  Plain(const Workload& workload, const Cluster& cluster, const Durations& predicted, std::string policy, Time restart,
        const std::vector<Quota>& quotas)
      : policy_(std::move(policy)), restart_cost_(restart.value) {
    for (const GpuPool& pool : cluster.pools) free_.push_back(pool.gpus);
    all_ = free_;
    for (JobIndex i = 0; i < workload.jobs.size(); ++i) {
      const Job& job = workload.jobs[i];
      Present present{i, job.gpus, job.arrival.value, job.deadline.value, job.priority};
      for (TypeIndex type = 0; type < free_.size(); ++type) {
        present.truth.push_back(workload.truth.of(i, type).value);
        present.predicted.push_back(predicted.of(i, type).value);
      }
      if (!workload.after.empty()) present.after.assign(workload.after[i].begin(), workload.after[i].end());
      add_lanes(present, workload, quotas);
      jobs_.push_back(present);
    }
    result_.start.assign(jobs_.size(), kNever);
    result_.finish.assign(jobs_.size(), kNever);
    result_.held.assign(jobs_.size(), Time(0));
    result_.stops.resize(jobs_.size());
  }

  Schedule run() {
    while (const auto next = next_event()) {
      now_ = *next;
      for (Present& job : jobs_) {
        if (job.state == State::running && job.end == now_) finish(job);
      }
      for (Present& job : jobs_) {
        if (job.state == State::absent && job.arrival == now_) job.state = State::held_back;
      }
      admit();
      decide();
    }
    return result_;
  }

 private:
  void add_lanes(Present& present, const Workload& workload, const std::vector<Quota>& quotas) {
    const Job& job = workload.jobs[present.index];
    const auto add = [&](const std::string& lane, int64_t weight, int64_t most) {
      present.lanes.push_back(lane);
      present.weights.push_back(weight);
      most_[lane] = most;
    };
    if (const auto most = quota_of(quotas, Quota::Of::user, workload, job)) {
      add("user " + std::to_string(job.user), quota_gpus(job), *most);
    }
    if (const auto most = quota_of(quotas, Quota::Of::group, workload, job)) {
      add("group " + std::to_string(job.virtual_cluster), quota_gpus(job), *most);
    }
    const int32_t array = workload.array_of.empty() ? -1 : workload.array_of[present.index];
    if (array >= 0 && workload.arrays[static_cast<size_t>(array)].most_at_once > 0) {
      add("array " + std::to_string(array), 1, workload.arrays[static_cast<size_t>(array)].most_at_once);
    }
  }

  // By order of submission: jobs whose predecessors have ended and that fit into all their quotas, unless an earlier one
  // that could run but for its quotas shares one of them.
  void admit() {
    std::map<std::string, int64_t> used;
    for (const Present& job : jobs_) {
      if (job.state != State::waiting && job.state != State::running) continue;
      for (size_t i = 0; i < job.lanes.size(); ++i) used[job.lanes[i]] += job.weights[i];
    }
    std::set<std::string> blocked;
    for (Present& job : jobs_) {
      const auto done = [&](size_t before) { return jobs_[before].state == State::done; };
      if (job.state != State::held_back || !std::all_of(job.after.begin(), job.after.end(), done)) continue;
      bool fits = true;
      for (size_t i = 0; i < job.lanes.size(); ++i) {
        fits = fits && !blocked.contains(job.lanes[i]) && used[job.lanes[i]] + job.weights[i] <= most_[job.lanes[i]];
      }
      if (fits) job.state = State::waiting;
      for (size_t i = 0; i < job.lanes.size(); ++i) {
        if (fits) {
          used[job.lanes[i]] += job.weights[i];
        } else {
          blocked.insert(job.lanes[i]);
        }
      }
    }
  }

  [[nodiscard]] std::optional<int64_t> next_event() const {
    std::optional<int64_t> next;
    const auto consider = [&](int64_t time) {
      if (!next || time < *next) next = time;
    };
    if (wake_ > now_) consider(wake_);
    for (const Present& job : jobs_) {
      if (job.state == State::absent) consider(job.arrival);
      if (job.state != State::running) continue;
      consider(job.end);
      if (policy_ != "2d-las") continue;
      for (const int64_t threshold : {kFirstThreshold, kSecondThreshold}) {
        const int64_t needed = (threshold + job.gpus - 1) / job.gpus - job.held;
        if (needed > 0 && job.since + needed > now_) consider(job.since + needed);
      }
    }
    return next;
  }

  void start(Present& job, size_t type) {
    free_[type] -= job.gpus;
    job.state = State::running;
    job.type = type;
    job.since = now_;
    job.restart = job.ran ? restart_cost_ : 0;
    job.end = now_ + job.restart + std::max<int64_t>(job.truth[type] - job.useful, 1);
    job.predicted_end = now_ + job.restart + std::max<int64_t>(job.predicted[type] - job.useful, 0);
    job.ran = true;
    if (result_.start[job.index] == kNever) result_.start[job.index] = Time(now_);
  }

  void release(Present& job) {
    free_[job.type] += job.gpus;
    job.held += now_ - job.since;
    job.useful += std::max<int64_t>(now_ - job.since - job.restart, 0);
    result_.held[job.index] = Time(job.held);
  }

  void finish(Present& job) {
    release(job);
    job.state = State::done;
    result_.finish[job.index] = Time(now_);
  }

  void stop(Present& job) {
    release(job);
    job.state = State::waiting;
    ++result_.preemptions;
    ++result_.stops[job.index].preemptions;
  }

  [[nodiscard]] std::optional<size_t> fastest(const Present& job, const std::vector<int64_t>& free) const {
    std::optional<size_t> best;
    for (size_t type = 0; type < free.size(); ++type) {
      if (job.predicted[type] == kNever.value || free[type] < job.gpus) continue;
      if (!best || job.predicted[type] < job.predicted[*best]) best = type;
    }
    return best;
  }

  [[nodiscard]] int64_t remaining(const Present& job) const {
    if (job.state == State::running) return std::max<int64_t>(job.predicted_end - now_, 0);
    return std::max<int64_t>(*std::min_element(job.predicted.begin(), job.predicted.end()) - job.useful, 0);
  }

  [[nodiscard]] int64_t key(const Present& job) const {
    const int64_t duration = *std::min_element(job.predicted.begin(), job.predicted.end());
    if (policy_.starts_with("fifo") || policy_ == "easy" || policy_ == "conservative") return 0;
    if (policy_.starts_with("sjf")) return duration;
    if (policy_ == "srsf" || policy_ == "srsf-skip") return duration * job.gpus;
    if (policy_.starts_with("edf")) return job.deadline;
    if (policy_.starts_with("srtf")) return remaining(job);
    if (policy_ == "srsf-preempt") return remaining(job) * job.gpus;
    CHECK(policy_ == "2d-las", "the plain twin does not know the policy " + policy_);
    const int64_t held = job.held + (job.state == State::running ? now_ - job.since : 0);
    const int64_t service = held * job.gpus;
    return (service >= kFirstThreshold ? 1 : 0) + (service >= kSecondThreshold ? 1 : 0);
  }

  // Jobs in one of two states by priority, key, then order of arrival.
  std::vector<Present*> in_order(State a, State b) {
    std::vector<Present*> list;
    for (Present& job : jobs_) {
      if (job.state == a || job.state == b) list.push_back(&job);
    }
    std::stable_sort(list.begin(), list.end(), [&](Present* x, Present* y) {
      return x->priority != y->priority ? x->priority > y->priority : key(*x) < key(*y);
    });
    return list;
  }

  // As long as was predicted; from then on twice that, four times, and so on.
  [[nodiscard]] int64_t expected_end(const Present& job) const {
    int64_t span = job.predicted_end - job.since;
    if (job.predicted_end <= now_) span = std::max(span, kSecond.value);
    while (job.since + span <= now_) span *= 2;
    return job.since + span;
  }

  void decide() {
    wake_ = -1;
    if (policy_ == "conservative") return reserve_all();
    if (policy_ == "srtf") return shortest_remaining();
    if (policy_ == "srtf-skip" || policy_ == "srsf-preempt" || policy_ == "2d-las") return walk();
    const bool skip = policy_.ends_with("-skip");
    for (Present* job : in_order(State::waiting, State::waiting)) {
      if (const auto type = fastest(*job, free_)) {
        start(*job, *type);
      } else if (!skip) {
        break;
      }
    }
    if (policy_ == "easy") backfill();
  }

  void walk() {
    std::vector<int64_t> free = free_;
    for (const Present& job : jobs_) {
      if (job.state == State::running) free[job.type] += job.gpus;
    }
    std::vector<std::pair<Present*, size_t>> starts;
    std::vector<Present*> stops;
    for (Present* job : in_order(State::waiting, State::running)) {
      if (job->state == State::waiting) {
        if (const auto type = fastest(*job, free)) {
          free[*type] -= job->gpus;
          starts.emplace_back(job, *type);
        }
      } else if (free[job->type] >= job->gpus) {
        free[job->type] -= job->gpus;
      } else {
        stops.push_back(job);
      }
    }
    for (Present* job : stops) stop(*job);
    for (const auto& [job, type] : starts) start(*job, type);
  }

  void shortest_remaining() {  // on one GPU type
    while (true) {
      const auto waiting = in_order(State::waiting, State::waiting);
      if (waiting.empty()) return;
      Present& first = *waiting.front();
      auto running = in_order(State::running, State::running);
      int64_t room = free_[0];
      std::vector<Present*> stops;
      for (auto run = running.rbegin(); run != running.rend() && room < first.gpus; ++run) {
        if ((*run)->predicted_end <= now_ + remaining(first) || (*run)->since == now_) break;
        room += (*run)->gpus;
        stops.push_back(*run);
      }
      if (room < first.gpus) return;
      for (Present* job : stops) stop(*job);
      start(first, 0);
    }
  }

  void backfill() {
    auto waiting = in_order(State::waiting, State::waiting);
    if (waiting.size() < 2) return;
    const Present& head = *waiting.front();
    int64_t soonest = kNever.value, at = 0, left_over = 0;
    size_t reserved = 0;
    for (size_t type = 0; type < free_.size(); ++type) {
      if (head.predicted[type] == kNever.value) continue;
      std::vector<const Present*> running;
      for (const Present& job : jobs_) {
        if (job.state == State::running && job.type == type) running.push_back(&job);
      }
      std::stable_sort(running.begin(), running.end(),
                       [&](const Present* x, const Present* y) { return expected_end(*x) < expected_end(*y); });
      int64_t free = free_[type];
      int64_t time = now_;
      for (size_t i = 0; i < running.size() && free < head.gpus; ++i) {
        free += running[i]->gpus;
        time = expected_end(*running[i]);
      }
      if (free < head.gpus || time + head.predicted[type] >= soonest) continue;
      soonest = time + head.predicted[type];
      at = time;
      left_over = free - head.gpus;
      reserved = type;
    }
    wake_ = at;
    for (size_t i = 1; i < waiting.size(); ++i) {
      Present& job = *waiting[i];
      std::vector<int64_t> allowed = free_;
      const bool within = job.predicted[reserved] <= at - now_;
      if (!within) allowed[reserved] = std::min(allowed[reserved], left_over);
      const auto type = fastest(job, allowed);
      if (!type) continue;
      if (*type == reserved && !within) left_over -= job.gpus;
      start(job, *type);
    }
  }

  struct Hold {
    int64_t begin = 0, end = 0, gpus = 0;
    size_t type = 0;
  };

  // Whether a gang finds GPUs of a type from `begin` to `end` beside what is held. What is held changes where a hold begins.
  [[nodiscard]] bool has_room(const std::vector<Hold>& holds, size_t type, int64_t gpus, int64_t begin,
                              int64_t end) const {
    const auto held_at = [&](int64_t time) {
      int64_t held = 0;
      for (const Hold& hold : holds) held += hold.type == type && hold.begin <= time && time < hold.end ? hold.gpus : 0;
      return held;
    };
    bool room = held_at(begin) + gpus <= all_[type];
    for (const Hold& hold : holds) {
      if (hold.begin > begin && hold.begin < end) room = room && held_at(hold.begin) + gpus <= all_[type];
    }
    return room;
  }

  // Plans every waiting job anew, one after the other, and starts those whose time has come.
  void reserve_all() {
    std::vector<Hold> holds;
    for (const Present& job : jobs_) {
      if (job.state == State::running) holds.push_back({job.since, expected_end(job), job.gpus, job.type});
    }
    std::vector<std::pair<Present*, size_t>> starts;
    for (Present* job : in_order(State::waiting, State::waiting)) {
      int64_t soonest = kNever.value;
      Hold best;
      for (size_t type = 0; type < all_.size(); ++type) {
        const int64_t length = job->predicted[type];
        if (length == kNever.value || job->gpus > all_[type]) continue;
        int64_t begin = kNever.value;
        if (has_room(holds, type, job->gpus, now_, now_ + length)) begin = now_;
        for (const Hold& hold : holds) {
          if (hold.end < begin && has_room(holds, type, job->gpus, hold.end, hold.end + length)) begin = hold.end;
        }
        if (begin + length >= soonest) continue;
        soonest = begin + length;
        best = {begin, soonest, job->gpus, type};
      }
      holds.push_back(best);
      if (best.begin == now_) starts.emplace_back(job, best.type);
      if (best.begin > now_ && (wake_ < 0 || best.begin < wake_)) wake_ = best.begin;
    }
    for (const auto& [job, type] : starts) start(*job, type);
  }

  std::string policy_;
  int64_t restart_cost_;
  int64_t wake_ = -1;  // when to look again at the latest
  int64_t now_ = -1;
  std::vector<Present> jobs_;
  std::vector<int64_t> free_;
  std::vector<int64_t> all_;             // GPUs by type
  std::map<std::string, int64_t> most_;  // by lane
  Schedule result_;
};

}  // namespace

Schedule reference_simulate(const Workload& workload, const Cluster& cluster, const Durations& predicted,
                            const std::string& policy, Time restart_cost, const std::vector<Quota>& quotas) {
  return Plain(workload, cluster, predicted, policy, restart_cost, quotas).run();
}

}  // namespace forerun::cluster
