// Gavel: how much of its time each job should spend on each type of GPU, as a linear program (cluster/gavel_program.h),
// and rounds that keep to it.
//
// gavel            the worst-off job's rate, against an equal share of the cluster, is made largest (max-min fairness)
// gavel-makespan   the last end comes soonest: rate / what is left is made largest for the worst-off
// gavel-ftf        the worst finish-time fairness (time in the system / time on a 1/n share) is made smallest
// The program is solved when the set of jobs has changed. With pack=1 two single-GPU jobs may share a GPU, where their
// speeds together were measured. In a round those run that are owed most: what their shares of the rounds so far come to,
// less the rounds they had; ties go by order of arrival. Shares are multiples of 2^-20, so that such sums are exact. Jobs
// of one kind whose rates are within 2 % of each other are treated alike where there are more than 40 jobs. With
// shuffle=SEED the solver sees the program in another order: a check that the schedule does not depend on it.
#include <algorithm>
#include <cmath>
#include <map>

#include "cluster/gavel_program.h"
#include "cluster/linear_program.h"
#include "cluster/policies/factories.h"
#include "cluster/policies/rounds.h"

namespace forerun::cluster {
namespace {

enum class GavelGoal : uint8_t { fairness, makespan, finish_time };

constexpr double kCloseEnough = 0.02;
constexpr size_t kFewJobs = 40;  // of which each is a class of its own unless they are exactly alike

class Gavel final : public RoundPolicy {
 public:
  Gavel(GavelGoal goal, Time round, bool pack, uint64_t shuffle)
      : RoundPolicy(round), goal_(goal), pack_(pack), shuffle_(shuffle) {}

 protected:
  std::vector<RoundChoice> choices(const ClusterView& view, const std::vector<JobIndex>& active) override {
    if (changed()) allocate(view, active);
    std::vector<std::pair<double, RoundChoice>> claims;
    for (auto& [choice, owed] : owed_) {
      owed.rounds += owed.share;
      if (owed.share > 0) claims.emplace_back(owed.rounds, choice);
    }
    std::stable_sort(claims.begin(), claims.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<RoundChoice> order;
    for (const auto& [rounds, choice] : claims) order.push_back(choice);
    return order;
  }

  void granted(const ClusterView& /*view*/, const std::vector<RoundChoice>& taken) override {
    for (const RoundChoice& choice : taken) {
      if (const auto owed = owed_.find(choice); owed != owed_.end()) owed->second.rounds -= 1;
    }
  }

  double claim(JobIndex job) const override {
    double most = 0;
    for (auto owed = owed_.lower_bound({job, 0, 0, 0}); owed != owed_.end() && owed->first.job == job; ++owed) {
      most = std::max(most, owed->second.rounds);
    }
    return most;
  }

  void filled(JobIndex job, TypeIndex type, double share) override {
    if (const auto owed = owed_.find({job, type}); owed != owed_.end()) owed->second.rounds -= steady(share);
  }

 private:
  struct Owed {
    double share = 0;   // of its time
    double rounds = 0;  // that it should have had by now, less those it had
  };
  struct JobClass {
    GavelClass program;
    std::vector<JobIndex> jobs;
  };

  // What a job gets done in a second on a type, as a share of the whole job.
  static double rate(const ClusterView& view, JobIndex job, TypeIndex type) {
    if (!view.usable(job, type)) return 0;
    return 1 / std::max(seconds(view.predicted(job, type)), 1e-9);
  }

  // The rate on an equal share of every type.
  static double equal_rate(const ClusterView& view, JobIndex job, double demand) {
    double gpus = 0;
    double sum = 0;
    for (TypeIndex type = 0; type < view.types(); ++type) {
      gpus += view.working(type);
      sum += view.working(type) * rate(view, job, type);
    }
    return gpus == 0 ? 0 : sum / gpus * std::min(1.0, gpus / demand);
  }

  // Of the whole job.
  static double left(const ClusterView& view, JobIndex job) {
    for (TypeIndex type = 0; type < view.types(); ++type) {
      const Time whole = view.predicted(job, type);
      if (whole != view.predicted_fastest(job)) continue;
      return std::max(seconds(view.predicted_remaining(job, type)) / std::max(seconds(whole), 1e-9), 1e-6);
    }
    return 1;
  }

  // Jobs whose rates over their floors are alike, with what they train, which decides who can share a GPU with whom; in
  // order of their first arrivals.
  std::vector<JobClass> classes_of(const ClusterView& view, const std::vector<double>& floor) const {
    using Key = std::pair<int32_t, std::vector<double>>;
    std::map<Key, JobClass> found;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      const Job& job = view.job(jobs_[i]);
      JobClass one{{1, job.gpus, {}}, {}};
      Key key{pack_ && view.any_pairs() ? job.kind : -1, {static_cast<double>(job.gpus)}};
      for (TypeIndex type = 0; type < view.types(); ++type) {
        const double value = floor[i] > 0 ? rate(view, jobs_[i], type) / floor[i] : 0;
        one.program.rates.push_back(value);
        const bool alike = jobs_.size() > kFewJobs && value > 0;
        key.second.push_back(alike ? std::round(std::log(value) / std::log(1 + kCloseEnough)) : value);
      }
      JobClass& place = found.try_emplace(key, std::move(one)).first->second;
      place.jobs.push_back(jobs_[i]);
      place.program.jobs = static_cast<double>(place.jobs.size());
    }
    std::vector<JobClass> classes;
    for (auto& [key, one] : found) classes.push_back(std::move(one));
    std::sort(classes.begin(), classes.end(),
              [](const JobClass& a, const JobClass& b) { return a.jobs.front() < b.jobs.front(); });
    return classes;
  }

  std::optional<GavelAnswer> solve(const ClusterView& view, const std::vector<JobClass>& classes,
                                   bool shares = true) const {
    const GavelQuestion question{shares, shuffle_};
    std::vector<GavelClass> programs;
    for (const JobClass& one : classes) programs.push_back(one.program);
    std::vector<int32_t> gpus;
    for (TypeIndex type = 0; type < view.types(); ++type) gpus.push_back(view.working(type));
    if (!pack_ || !view.any_pairs()) return solve_gavel(programs, gpus, {}, question);
    const auto pairs = [&](size_t a, size_t b, uint32_t type) {
      const auto speeds = view.packed_speeds(classes[a].jobs.front(), classes[b].jobs.front(), type);
      // Two that get no more done together than one alone may as well take turns.
      return speeds && speeds->first + speeds->second > 1 ? speeds : std::nullopt;
    };
    return solve_gavel(programs, gpus, pairs, question);
  }

  // Hands what a class gets to its jobs, and what two classes get together to pairs of their jobs.
  static std::map<RoundChoice, double> hand_out(const std::vector<JobClass>& classes, const GavelAnswer& answer) {
    std::map<RoundChoice, double> shares;
    for (const GavelShare& share : answer.shares) {
      const std::vector<JobIndex>& a = classes[share.a].jobs;
      const std::vector<JobIndex>& b = classes[share.b].jobs;
      const size_t parts = share.alone || share.a == share.b ? a.size() : std::max(a.size(), b.size());
      for (size_t i = 0; i < parts; ++i) {
        const JobIndex one = a[i % a.size()];
        const JobIndex other = share.alone ? kNoJob : share.a == share.b ? a[(i + 1) % a.size()] : b[i % b.size()];
        const RoundChoice choice{other == kNoJob ? one : std::min(one, other), share.type, 0,
                                 other == kNoJob ? kNoJob : std::max(one, other)};
        shares[choice] += steady(share.time / static_cast<double>(parts));
      }
    }
    return shares;
  }

  // New shares. What a job is owed on a type stays, alone or with whomever it shared a GPU.
  void keep_to(const std::map<RoundChoice, double>& shares) {
    std::map<RoundChoice, Owed> before = std::move(owed_);
    owed_.clear();
    for (const auto& [choice, share] : shares) owed_[choice].share = share;
    for (const auto& [choice, owed] : before) {
      const auto same = owed_.find(choice);
      const auto alone = owed_.find({choice.job, choice.type});
      if (same != owed_.end()) {
        same->second.rounds += owed.rounds;
      } else if (alone != owed_.end()) {
        alone->second.rounds += owed.rounds;
      }
    }
  }

  void allocate(const ClusterView& view, const std::vector<JobIndex>& active) {
    jobs_ = active;
    std::erase_if(owed_, [&](const auto& entry) {  // of jobs that have ended
      const auto& [job, type, gpus, partner] = entry.first;
      return !std::binary_search(active.begin(), active.end(), job) ||
             (partner != kNoJob && !std::binary_search(active.begin(), active.end(), partner));
    });
    double demand = 1e-9;
    for (const JobIndex job : jobs_) demand += view.job(job).gpus;
    if (goal_ == GavelGoal::finish_time) return allocate_finish_times(view, demand);
    std::vector<double> floor(jobs_.size());
    for (size_t i = 0; i < jobs_.size(); ++i) {
      floor[i] = goal_ == GavelGoal::makespan ? left(view, jobs_[i]) : equal_rate(view, jobs_[i], demand);
    }
    keep_to_floors(view, floor);
  }

  // Allocates so that the worst-off job's rate over its floor is largest.
  void keep_to_floors(const ClusterView& view, const std::vector<double>& floor) {
    const std::vector<JobClass> classes = classes_of(view, floor);
    if (const auto answer = solve(view, classes)) keep_to(hand_out(classes, *answer));
  }

  // What every job must get done in a second for a finish-time fairness; nothing where one has waited too long for it.
  std::optional<std::vector<double>> floors_for(const ClusterView& view, double fairness, double demand) const {
    std::vector<double> floor(jobs_.size());
    for (size_t i = 0; i < jobs_.size(); ++i) {
      const double alone = 1 / std::max(equal_rate(view, jobs_[i], demand), 1e-12);
      const double time = fairness * alone - seconds(view.now() - view.job(jobs_[i]).arrival);
      if (time <= 0) return std::nullopt;
      floor[i] = left(view, jobs_[i]) / time;
    }
    return floor;
  }

  // The smallest worst finish-time fairness that can be had. For each fairness tried the program says by how much the
  // worst-off exceeds what it needs, which tells both whether it can be had and where to try next.
  void allocate_finish_times(const ClusterView& view, double demand) {
    double low = 0;     // cannot be had
    double high = 1e9;  // can be had
    double next = fairness_;
    std::optional<std::vector<double>> best;  // floors
    for (int i = 0; i < 40 && high - low > kCloseEnough * high; ++i) {
      auto floor = floors_for(view, next, demand);
      double worst = 0;
      if (floor) {
        if (const auto answer = solve(view, classes_of(view, *floor), false)) worst = answer->worst;
        if (worst >= 1) best = std::move(floor);
      }
      (worst >= 1 ? high : low) = next;
      // Needs fall as 1 / (fairness x alone - waited): about as the fairness itself, where waits are short.
      const double guess =
          worst > 0 ? next / worst * (worst >= 1 ? 1 - kCloseEnough / 2 : 1 + kCloseEnough / 2) : next * 2;
      const double middle = high < 1e9 ? (low + high) / 2 : next * 2;
      next = guess > low && guess < high ? guess : middle;
    }
    if (best) keep_to_floors(view, *best);
    fairness_ = std::clamp(high, 0.01, 1e6);
  }

  GavelGoal goal_;
  bool pack_;
  uint64_t shuffle_;
  double fairness_ = 1;         // the best worst finish-time fairness, when last looked for
  std::vector<JobIndex> jobs_;  // of the last allocation
  std::map<RoundChoice, Owed> owed_;
};

std::unique_ptr<Policy> make_gavel_for(GavelGoal goal, OptionReader& options) {
  const Time round = time_from_seconds(options.number("round", 360, 1, kLongestRound));
  const bool pack = options.whole("pack", 0, 0, 1) == 1;
  return std::make_unique<Gavel>(goal, round, pack, static_cast<uint64_t>(options.whole("shuffle", 0, 0, 1e9)));
}

}  // namespace

std::unique_ptr<Policy> make_gavel(OptionReader& options) { return make_gavel_for(GavelGoal::fairness, options); }
std::unique_ptr<Policy> make_gavel_makespan(OptionReader& options) {
  return make_gavel_for(GavelGoal::makespan, options);
}
std::unique_ptr<Policy> make_gavel_ftf(OptionReader& options) {
  return make_gavel_for(GavelGoal::finish_time, options);
}

}  // namespace forerun::cluster
