#include "cluster/simulator.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "cluster/admission.h"
#include "cluster/end_queue.h"
#include "cluster/failures.h"
#include "cluster/nodes.h"
#include "cluster/scaling.h"

namespace forerun::cluster {
namespace {

constexpr Time kLastInstant{kNever.value - 1};
constexpr int64_t kMostFailures = 1'000'000;  // and so many for each job:
constexpr int64_t kFailuresPerJob = 100;
constexpr int64_t kProgressEvery = 64;  // events

class Engine final : public Scheduler {
 public:
  Engine(const Workload& workload, const Cluster& cluster, const Durations& predicted, Policy& policy,
         const SimulationOptions& options);

  Schedule run();

  void start(JobIndex job, TypeIndex type, int32_t gpus) override;
  void share(JobIndex job, JobIndex partner) override;
  void preempt(JobIndex job) override;
  void wake_at(Time time) override {
    CHECK(time > now_, "a policy asked to be woken in the past");
    wake_ = std::min(wake_, time);
  }
  void give_up(Error why) override {
    schedule_.cut = Schedule::Cut::policy;
    schedule_.fault = std::move(why);
  }
  bool goes_on() override { return options_.work == nullptr || options_.work->goes_on(); }

 private:
  Time next_event();
  void advance_to(Time time);
  void end_jobs();
  void fail_and_repair();
  void arrivals();
  void tell();  // how many jobs have ended
  void settle(const Running& run);
  void forget(uint32_t slot);  // takes a run out of running_
  void release(JobIndex job);  // takes its GPUs back and counts its time
  void fail_job(JobIndex job);
  void fail_unit(TypeIndex type);
  void add_gpus(TypeIndex type, int32_t gpus);       // back from repair, or failed where negative
  [[nodiscard]] std::vector<int32_t> units() const;  // by type: nodes that work, or GPUs
  void launch(Running run, GangPlace place);         // computes its end
  void change_speed(JobIndex job, JobIndex partner, double speed);
  // How fast the gang really runs there.
  [[nodiscard]] double speed_at(JobIndex job, const Running& run, const GangPlace& place) const;
  [[nodiscard]] bool waiting() const { return shown_ > finished_ + running_.size(); }
  [[nodiscard]] auto stale() const {
    return [this](const EndQueue::End& end) {
      return slot_[end.job] == kNoSlot || sequence_[slot_[end.job]] != end.sequence;
    };
  }

  const Workload& workload_;
  const Durations& truth_;
  Policy& policy_;
  const SimulationOptions& options_;
  Schedule schedule_;
  EndQueue ends_;
  FailureProcess failures_;
  Admission admission_;
  std::vector<uint64_t> sequence_;             // by slot of running_: which start it was
  std::vector<std::optional<NodeMap>> nodes_;  // by type; nothing where GPUs are counted
  std::vector<GangPlace> places_;              // by slot of running_; empty where no pool has nodes
  std::vector<Time> done_;                     // by job: true progress, as time of its gang on its fastest type
  uint64_t starts_ = 0;
  size_t arrived_ = 0;
  size_t shown_ = 0;  // to the policy: all that have arrived, less those held back
  size_t finished_ = 0;
  size_t told_ = 0;  // of them, to SimulationOptions::work
  int64_t free_gpus_ = 0;
  Time wake_ = kNever;
  bool has_nodes_ = false;
};

Engine::Engine(const Workload& workload, const Cluster& cluster, const Durations& predicted, Policy& policy,
               const SimulationOptions& options)
    : workload_(workload),
      truth_(workload.truth),
      policy_(policy),
      options_(options),
      failures_(cluster, options.failures),
      admission_(workload, options.quotas) {
  const size_t jobs = workload.jobs.size();
  CHECK(truth_.jobs() == jobs && predicted.jobs() == jobs, "durations of other jobs");
  cluster_ = &cluster;
  jobs_ = workload.jobs.data();
  named_ = &workload;
  speeds_ = workload.speeds.get();
  packing_ = workload.packing.get();
  predicted_ = &predicted;
  for (const GpuPool& pool : cluster.pools) free_.push_back(pool.gpus);
  working_ = free_;
  free_gpus_ = cluster.gpus();
  for (const GpuPool& pool : cluster.pools) {
    nodes_.emplace_back();
    if (pool.gpus_per_node > 0) nodes_.back().emplace(pool);
    has_nodes_ = has_nodes_ || pool.gpus_per_node > 0;
  }
  slot_.assign(jobs, kNoSlot);
  held_.assign(jobs, Time(0));
  progress_.assign(jobs, Time(0));
  done_.assign(jobs, Time(0));
  schedule_.start.assign(jobs, kNever);
  schedule_.finish.assign(jobs, kNever);
  schedule_.stops.resize(jobs);
}

void Engine::start(JobIndex job, TypeIndex type, int32_t gpus) {
  const Job& wanted = jobs_[job];
  CHECK(slot_[job] == kNoSlot && schedule_.finish[job] == kNever, "started a job that is not waiting");
  const int32_t size = gpus == 0 ? wanted.gpus : gpus;
  CHECK(size == wanted.gpus || (size >= wanted.least_gpus && size <= wanted.most_gpus && size > 0),
        "started a job with a size it cannot have");
  CHECK(size <= free_[type], "started a job that does not fit");
  free_[type] -= size;
  free_gpus_ -= size;
  Running run{job, type, size, now_};
  run.restart = schedule_.start[job] == kNever ? Time(0) : options_.restart_cost;
  GangPlace place;
  if (nodes_[type]) place = nodes_[type]->take(size);
  run.speed = static_cast<float>(speed_at(job, run, place));
  launch(run, std::move(place));
}

void Engine::launch(Running run, GangPlace place) {
  const JobIndex job = run.job;
  const Time whole = truth_.of(job, run.type);
  CHECK(whole != kNever, "started a job on a type it cannot run on");
  run.predicted_end = later(later(now_, run.restart), at_speed(predicted_remaining(job, run.type), run.speed));
  Time remaining = whole;
  if (schedule_.start[job] == kNever) {
    schedule_.start[job] = now_;
  } else {
    const Time fastest = truth_.types() == 1 ? whole : truth_.fastest(job);
    remaining = std::max(scaled(fastest - done_[job], whole, fastest), Time(1));
  }
  slot_[job] = static_cast<uint32_t>(running_.size());
  running_.push_back(run);
  sequence_.push_back(starts_);
  if (has_nodes_) places_.push_back(std::move(place));
  const Time end = later(later(now_, run.restart), at_speed(remaining, run.speed));
  if (end > kLastInstant) schedule_.cut = Schedule::Cut::end_of_time;
  ends_.add({std::min(end, kLastInstant), starts_, job});
  ++starts_;
}

void Engine::share(JobIndex job, JobIndex partner) {
  CHECK(slot_[job] == kNoSlot && schedule_.finish[job] == kNever, "packed a job that is not waiting");
  CHECK(jobs_[job].gpus == 1 && running(partner).gpus == 1 && running(partner).partner == kNoJob && !has_nodes_,
        "only two single-GPU jobs share a GPU, of a counted pool");
  const auto speeds = packed_speeds(job, partner, running(partner).type);
  CHECK(speeds.has_value(), "packed jobs whose speeds are not known");
  change_speed(partner, job, speeds->second);
  Running run{job, running(partner).type, 1, now_};
  run.restart = schedule_.start[job] == kNever ? Time(0) : options_.restart_cost;
  run.partner = partner;
  run.speed = static_cast<float>(speeds->first);
  launch(run, {});
}

// A running job goes on at another speed, beside `partner` or alone.
void Engine::change_speed(JobIndex job, JobIndex partner, double speed) {
  Running run = running(job);
  const Time ran = now_ - run.since;
  settle(run);
  const uint32_t slot = slot_[job];
  run.restart = std::max(run.restart - ran, Time(0));
  run.since = now_;
  run.partner = partner;
  run.speed = static_cast<float>(speed);
  forget(slot);
  ends_.stopped(stale());
  launch(run, {});
}

double Engine::speed_at(JobIndex job, const Running& run, const GangPlace& place) const {
  const double shrunk = predicted_speed(job, run.type, run.gpus);
  if (place.nodes.empty()) return shrunk;
  const auto nodes = static_cast<int32_t>(place.nodes.size());
  if (speeds_ != nullptr) {
    const Job& stated = jobs_[job];
    const auto measured = speeds_->measured_speed({job, stated.kind, run.type, stated.gpus, run.gpus, nodes});
    if (measured) return *measured;
  }
  if (workload_.communication && !workload_.traffic.empty() && workload_.traffic[job].known()) {
    const GangTraffic& traffic = workload_.traffic[job];
    const double step = seconds(truth_.of(job, run.type)) / traffic.iterations;
    return shrunk * workload_.communication->speed(step, traffic.gradients, run.type, {run.gpus, nodes, place.racks});
  }
  const double doublings = std::log2(static_cast<double>(nodes) / fewest_nodes(cluster_->pools[run.type], run.gpus));
  const double spread = std::pow(1 - options_.node_loss, doublings) * (place.racks > 1 ? 1 - options_.rack_loss : 1);
  return shrunk * spread;
}

// Counts what a run has held and got done so far.
void Engine::settle(const Running& run) {
  const JobIndex job = run.job;
  progress_[job] += useful_time(run, now_, *predicted_);
  done_[job] += useful_time(run, now_, truth_);
  const Time held = now_ - run.since;
  held_[job] += held;
  schedule_.gpu_seconds += seconds(held) * run.gpus * (run.partner == kNoJob ? 1 : 0.5);
  if (options_.keep_segments && held.value > 0) {
    schedule_.segments.push_back({job, run.type, run.gpus, run.since, now_});
  }
}

void Engine::forget(uint32_t slot) {
  slot_[running_[slot].job] = kNoSlot;
  if (slot + 1 < running_.size()) {
    running_[slot] = running_.back();
    sequence_[slot] = sequence_.back();
    slot_[running_[slot].job] = slot;
  }
  running_.pop_back();
  sequence_.pop_back();
}

void Engine::release(JobIndex job) {
  const uint32_t slot = slot_[job];
  const Running run = running_[slot];
  settle(run);
  if (has_nodes_) {
    if (nodes_[run.type]) nodes_[run.type]->give_back(places_[slot]);
    std::swap(places_[slot], places_.back());
    places_.pop_back();
  }
  forget(slot);
  if (run.partner != kNoJob) {
    change_speed(run.partner, kNoJob, 1);  // which has the GPU to itself now
  } else {
    free_[run.type] += run.gpus;
    free_gpus_ += run.gpus;
  }
}

void Engine::preempt(JobIndex job) {
  CHECK(slot_[job] != kNoSlot, "preempted a job that does not run");
  if (running(job).since == now_ && schedule_.start[job] == now_) schedule_.start[job] = kNever;  // it never ran
  release(job);
  ends_.stopped(stale());
  ++schedule_.preemptions;
  ++schedule_.stops[job].preemptions;
}

Time Engine::next_event() {
  Time next = ends_.next_time(stale());
  if (arrived_ < workload_.jobs.size()) next = std::min(next, jobs_[arrived_].arrival);
  if (waiting() || !running_.empty()) {
    next = std::min(next, wake_);
    if (failures_.active()) next = std::min(next, failures_.next_time(now_, units()));
  }
  return next;
}

void Engine::advance_to(Time time) {
  if (waiting()) schedule_.idle_wanted += seconds(time - now_) * static_cast<double>(free_gpus_);
  now_ = time;
}

void Engine::end_jobs() {
  while (ends_.next_time(stale()) == now_) {
    const JobIndex job = ends_.front().job;
    ends_.pop();
    release(job);
    schedule_.finish[job] = now_;
    ++finished_;
    policy_.finished(*this, job);
    if (admission_.active()) admission_.finished(job);
  }
}

void Engine::fail_job(JobIndex job) {
  const Time before = done_[job];
  release(job);
  ends_.stopped(stale());
  ++schedule_.restarts;
  ++schedule_.stops[job].failures;
  const Time every = options_.failures.checkpoint_every;
  if (every.value > 0) {
    const Time kept = std::max(before, Time(done_[job].value / every.value * every.value));
    const Time lost = done_[job] - kept;
    done_[job] = kept;
    progress_[job] = std::max(progress_[job] - lost, Time(0));
  }
  policy_.stopped(*this, job);
}

std::vector<int32_t> Engine::units() const {
  std::vector<int32_t> units = working_;
  for (TypeIndex type = 0; type < units.size(); ++type) {
    if (nodes_[type]) units[type] = static_cast<int32_t>(nodes_[type]->up().size());
  }
  return units;
}

void Engine::add_gpus(TypeIndex type, int32_t gpus) {
  working_[type] += gpus;
  free_[type] += gpus;
  free_gpus_ += gpus;
}

void Engine::fail_unit(TypeIndex type) {
  ++schedule_.failures;
  if (schedule_.failures > kMostFailures + kFailuresPerJob * static_cast<int64_t>(workload_.jobs.size())) {
    schedule_.cut = Schedule::Cut::failures;
  }
  FailureProcess::Event failed{now_, type, 1, -1, true};
  if (nodes_[type]) {
    failed.node =
        nodes_[type]->up()[static_cast<size_t>(failures_.pick(static_cast<int32_t>(nodes_[type]->up().size())))];
    failed.gpus = nodes_[type]->size(failed.node);
    std::vector<JobIndex> victims;
    for (size_t slot = 0; slot < running_.size(); ++slot) {
      const auto on_node = [&](const NodeShare& share) { return share.node == failed.node; };
      const bool hit =
          running_[slot].type == type && std::any_of(places_[slot].nodes.begin(), places_[slot].nodes.end(), on_node);
      if (hit) victims.push_back(running_[slot].job);
    }
    for (const JobIndex job : victims) fail_job(job);
    nodes_[type]->fail(failed.node);
  } else {
    int64_t place = failures_.pick(working_[type]) - free_[type];
    JobIndex victim = kNoJob;
    for (size_t slot = 0; slot < running_.size() && place >= 0; ++slot) {
      if (running_[slot].type != type) continue;
      place -= running_[slot].gpus;
      victim = running_[slot].job;
    }
    if (victim != kNoJob) {
      const JobIndex partner = running(victim).partner;
      if (partner != kNoJob) fail_job(partner);
      fail_job(victim);
    }
  }
  add_gpus(type, -failed.gpus);
  failures_.repair_later(now_, failed);
}

void Engine::fail_and_repair() {
  while (schedule_.cut == Schedule::Cut::none && failures_.next_time(now_, units()) <= now_) {
    const FailureProcess::Event event = failures_.take();
    if (!event.repair) {
      fail_unit(event.type);
      continue;
    }
    if (nodes_[event.type]) nodes_[event.type]->repair(event.node);
    add_gpus(event.type, event.gpus);
  }
}

void Engine::arrivals() {
  for (; arrived_ < workload_.jobs.size() && jobs_[arrived_].arrival == now_; ++arrived_) {
    const auto job = static_cast<JobIndex>(arrived_);
    if (admission_.active()) {
      admission_.submitted(job);
    } else {
      ++shown_;
      policy_.arrived(*this, job);
    }
  }
  if (!admission_.active()) return;
  for (const JobIndex job : admission_.admit()) {
    ++shown_;
    policy_.arrived(*this, job);
  }
}

void Engine::tell() { (void)options_.work->advance(static_cast<int64_t>(finished_ - std::exchange(told_, finished_))); }

Schedule Engine::run() {
  if (!workload_.jobs.empty()) now_ = jobs_[0].arrival;
  policy_.begin(*this);
  for (Time next = next_event(); next != kNever && schedule_.cut == Schedule::Cut::none; next = next_event()) {
    advance_to(next);
    end_jobs();
    if (failures_.active()) fail_and_repair();
    arrivals();
    wake_ = kNever;
    ++schedule_.events;
    if (options_.work != nullptr && schedule_.events % kProgressEvery == 0) tell();
    if (!goes_on()) {
      schedule_.cut = Schedule::Cut::stopped;
      break;
    }
    policy_.schedule(*this);
  }
  if (options_.work != nullptr) tell();
  schedule_.held = std::move(held_);
  return std::move(schedule_);
}

}  // namespace

Schedule simulate(const Workload& workload, const Cluster& cluster, const Durations& predicted, Policy& policy,
                  const SimulationOptions& options) {
  return Engine(workload, cluster, predicted, policy, options).run();
}

}  // namespace forerun::cluster
