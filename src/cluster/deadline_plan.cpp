#include "cluster/deadline_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace forerun::cluster {
namespace {

constexpr double kUnknownGrowth = std::numeric_limits<double>::infinity();

struct QueueMachine {
  int kind = 0;
  int index = 0;  // of its kind
  int64_t free_at = 0;
  std::vector<int> queue;
  SequenceCost cost;
  std::vector<int64_t> lengths;  // of the queue's jobs, shortest first
};

// Steps of the budget: a whole sequence counts for as much as this many quick looks.
constexpr int64_t kStepsOfSequence = 10;

// Queues on machines, and what they cost.
class Queues {
 public:
  Queues(const DeadlineProblem& problem, int most_nodes) : problem_(problem), most_nodes_(most_nodes) {
    for (size_t kind = 0; kind < problem.queues.free_at.size(); ++kind) {
      const auto& free_at = problem.queues.free_at[kind];
      for (size_t i = 0; i < free_at.size(); ++i) {
        machines_.push_back({static_cast<int>(kind), static_cast<int>(i), free_at[i], {}, {}, {}});
      }
    }
  }

  std::vector<QueueMachine>& machines() { return machines_; }
  bool runs_on(int job, const QueueMachine& machine) const {
    return problem_.queues.durations[job][machine.kind] != kCannotRun;
  }
  QueueJob on(int job, const QueueMachine& machine) const {
    return {problem_.queues.durations[job][machine.kind], problem_.deadlines[job][machine.kind]};
  }

  // The best sequence of some jobs on a machine, and what it costs.
  SequenceCost sequence(const QueueMachine& machine, std::vector<int>& jobs) {
    scratch_.clear();
    for (const int job : jobs) scratch_.push_back(on(job, machine));
    const Sequence found = best_sequence(machine.free_at, scratch_, most_nodes_);
    steps_ += kStepsOfSequence;
    std::vector<int> ordered(jobs.size());
    for (size_t i = 0; i < jobs.size(); ++i) ordered[i] = jobs[found.order[i]];
    jobs = std::move(ordered);
    return found.cost;
  }
  // What the best sequence of a machine's queue and one job more costs.
  SequenceCost cost_with(const QueueMachine& machine, int job) {
    scratch_.clear();
    for (const int queued : machine.queue) scratch_.push_back(on(queued, machine));
    scratch_.push_back(on(job, machine));
    steps_ += kStepsOfSequence;
    return best_sequence(machine.free_at, scratch_, most_nodes_).cost;
  }
  void set_queue(QueueMachine& machine, std::vector<int> jobs, SequenceCost cost) const {
    machine.cost = cost;
    machine.queue = std::move(jobs);
    machine.lengths.clear();
    for (const int job : machine.queue) machine.lengths.push_back(on(job, machine).duration);
    std::sort(machine.lengths.begin(), machine.lengths.end());
  }
  // A bound from below on the sum of completions of a queue that loses one job and takes another; -1: none. Shortest
  // first, deadlines or not.
  double least_completion(const QueueMachine& machine, int without, int with) {
    ++steps_;
    int64_t skipped = without < 0 ? -1 : on(without, machine).duration;
    const int64_t added = with < 0 ? -1 : on(with, machine).duration;
    bool to_add = with >= 0;
    int64_t end = machine.free_at;
    double sum = 0;
    const auto run = [&](int64_t length) {
      end += length;
      sum += static_cast<double>(end);
    };
    for (const int64_t length : machine.lengths) {
      if (length == skipped) {
        skipped = -1;
        continue;
      }
      if (to_add && added <= length) {
        run(added);
        to_add = false;
      }
      run(length);
    }
    if (to_add) run(added);
    return sum;
  }
  // Keeps the order given.
  void keep_queue(QueueMachine& machine, std::vector<int> jobs) const {
    std::vector<QueueJob> here;
    for (const int job : jobs) here.push_back(on(job, machine));
    std::vector<int> order(jobs.size());
    std::iota(order.begin(), order.end(), 0);
    set_queue(machine, std::move(jobs), cost_of_order(machine.free_at, here, order));
  }

  int64_t steps() const { return steps_; }

  DeadlinePlan plan() const {
    DeadlinePlan plan;
    plan.places.resize(problem_.queues.durations.size());
    for (const QueueMachine& machine : machines_) {
      int64_t end = machine.free_at;
      for (size_t i = 0; i < machine.queue.size(); ++i) {
        const int job = machine.queue[i];
        plan.places[job] = {machine.kind, machine.index, static_cast<int>(machine.queue.size() - i), end};
        end += problem_.queues.durations[job][machine.kind];
      }
      plan.cost = plan.cost + machine.cost;
    }
    return plan;
  }

  void adopt(const std::vector<QueuePlace>& places) {
    std::vector<std::vector<int>> queues(machines_.size());
    std::vector<size_t> first_of_kind(problem_.queues.free_at.size());
    for (size_t kind = 1; kind < first_of_kind.size(); ++kind) {
      first_of_kind[kind] = first_of_kind[kind - 1] + problem_.queues.free_at[kind - 1].size();
    }
    for (size_t job = 0; job < places.size(); ++job) {
      queues[first_of_kind[places[job].kind] + static_cast<size_t>(places[job].machine)].push_back(
          static_cast<int>(job));
    }
    for (size_t m = 0; m < machines_.size(); ++m) {
      std::sort(queues[m].begin(), queues[m].end(),
                [&](int a, int b) { return places[a].from_end > places[b].from_end; });
      keep_queue(machines_[m], queues[m]);
      std::vector<int> better = queues[m];
      const SequenceCost cost = sequence(machines_[m], better);
      if (cost < machines_[m].cost) set_queue(machines_[m], std::move(better), cost);
    }
  }

 private:
  const DeadlineProblem& problem_;
  int most_nodes_;
  std::vector<QueueMachine> machines_;
  std::vector<QueueJob> scratch_;
  int64_t steps_ = 0;
};

// Moves and exchanges between queues, first improvement.
class Improver {
 public:
  Improver(Queues& queues, int64_t most) : queues_(queues), machines_(queues.machines()), most_(most) {}

  void run(bool only_late) {
    const std::vector<size_t> all = every_machine();
    while (!spent() && (pass(late_machines(), all) || (!only_late && pass(all, all)))) {
    }
  }

 private:
  bool spent() const { return queues_.steps() >= most_; }
  std::vector<size_t> every_machine() const {
    std::vector<size_t> all(machines_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    return all;
  }
  std::vector<size_t> late_machines() const {
    std::vector<size_t> late;
    for (size_t m = 0; m < machines_.size(); ++m) {
      if (machines_[m].cost.tardiness > 0) late.push_back(m);
    }
    std::stable_sort(late.begin(), late.end(),
                     [&](size_t a, size_t b) { return machines_[a].cost.tardiness > machines_[b].cost.tardiness; });
    return late;
  }

  bool pass(const std::vector<size_t>& from, const std::vector<size_t>& to) {
    bool any = false;
    for (const size_t a : from) {
      for (const size_t b : to) {
        if (a == b) continue;
        while (!spent() && (move_one(machines_[a], machines_[b]) || exchange(machines_[a], machines_[b]))) any = true;
      }
    }
    return any;
  }

  // Whether an exchange (-1: a move) cannot bring anything, by a look at the lengths alone.
  bool hopeless(const QueueMachine& a, const QueueMachine& b, int from_a, int from_b) {
    const SequenceCost now = a.cost + b.cost;
    return now.tardiness == 0 &&
           queues_.least_completion(a, from_a, from_b) + queues_.least_completion(b, from_b, from_a) >= now.completion;
  }

  bool take_if_better(QueueMachine& a, QueueMachine& b, std::vector<int> at_a, std::vector<int> at_b) {
    const SequenceCost before = a.cost + b.cost;
    const SequenceCost cost_a = queues_.sequence(a, at_a);
    const SequenceCost cost_b = queues_.sequence(b, at_b);
    if (!(cost_a + cost_b < before)) return false;
    queues_.set_queue(a, std::move(at_a), cost_a);
    queues_.set_queue(b, std::move(at_b), cost_b);
    return true;
  }

  bool move_one(QueueMachine& a, QueueMachine& b) {
    for (size_t i = 0; i < a.queue.size() && !spent(); ++i) {
      const int job = a.queue[i];
      if (!queues_.runs_on(job, b) || hopeless(a, b, job, -1)) continue;
      std::vector<int> at_a = a.queue;
      at_a.erase(at_a.begin() + static_cast<std::ptrdiff_t>(i));
      std::vector<int> at_b = b.queue;
      at_b.push_back(job);
      if (take_if_better(a, b, std::move(at_a), std::move(at_b))) return true;
    }
    return false;
  }

  bool exchange(QueueMachine& a, QueueMachine& b) {
    for (size_t i = 0; i < a.queue.size(); ++i) {
      for (size_t k = 0; k < b.queue.size() && !spent(); ++k) {
        if (!queues_.runs_on(a.queue[i], b) || !queues_.runs_on(b.queue[k], a)) continue;
        if (hopeless(a, b, a.queue[i], b.queue[k])) continue;
        std::vector<int> at_a = a.queue;
        std::vector<int> at_b = b.queue;
        std::swap(at_a[i], at_b[k]);
        if (take_if_better(a, b, std::move(at_a), std::move(at_b))) return true;
      }
    }
    return false;
  }

  Queues& queues_;
  std::vector<QueueMachine>& machines_;
  int64_t most_;
};

// Whether the queues are as the matching left them, shortest first, so that the sum of completions is the least there is.
// In whole numbers: doubles that add up months of many jobs round.
bool is_shortest_first(const DeadlineProblem& problem, const DeadlinePlan& plan, std::span<const QueuePlace> matched) {
  return totals_of(problem.queues, plan.places).completion <= totals_of(problem.queues, matched).completion;
}

DeadlinePlan plan_from(const DeadlineProblem& problem, const std::vector<QueuePlace>& places, int most_nodes) {
  Queues queues(problem, most_nodes);
  queues.adopt(places);
  return queues.plan();
}

}  // namespace

DeadlinePlan plan_greedily(const DeadlineProblem& problem) {
  Queues queues(problem, 0);  // many sequences are looked at: without branch and bound
  std::vector<QueueMachine>& machines = queues.machines();
  const size_t jobs = problem.queues.durations.size();
  std::vector<int> waiting(jobs);
  std::iota(waiting.begin(), waiting.end(), 0);
  std::vector<std::vector<SequenceCost>> growth(machines.size(), std::vector<SequenceCost>(jobs));
  std::vector<int> cheapest(machines.size());  // of those that wait, by machine; of equals the first
  const auto find_cheapest = [&](size_t m) {
    const auto cheaper = [&](int a, int b) { return growth[m][a] < growth[m][b]; };
    cheapest[m] = waiting.empty() ? -1 : *std::min_element(waiting.begin(), waiting.end(), cheaper);
  };
  const auto look = [&](size_t m) {
    // Machines that are alike and free at once need be looked at once.
    for (size_t other = 0; other < m && machines[m].queue.empty(); ++other) {
      if (machines[other].queue.empty() && machines[other].kind == machines[m].kind &&
          machines[other].free_at == machines[m].free_at) {
        growth[m] = growth[other];
        return find_cheapest(m);
      }
    }
    for (const int job : waiting) {
      growth[m][job] = {kUnknownGrowth, kUnknownGrowth};
      if (!queues.runs_on(job, machines[m])) continue;
      growth[m][job] = queues.cost_with(machines[m], job) - machines[m].cost;
    }
    find_cheapest(m);
  };
  for (size_t m = 0; m < machines.size(); ++m) look(m);
  while (!waiting.empty()) {
    size_t best = 0;
    for (size_t m = 1; m < machines.size(); ++m) {
      if (growth[m][cheapest[m]] < growth[best][cheapest[best]]) best = m;
    }
    const int taken = cheapest[best];
    std::vector<int> with = machines[best].queue;
    with.push_back(taken);
    waiting.erase(std::lower_bound(waiting.begin(), waiting.end(), taken));
    const SequenceCost cost = queues.sequence(machines[best], with);
    queues.set_queue(machines[best], std::move(with), cost);
    look(best);
    for (size_t m = 0; m < machines.size(); ++m) {
      if (cheapest[m] == taken) find_cheapest(m);
    }
  }
  return queues.plan();
}

DeadlinePlan plan_by_matching(const DeadlineProblem& problem, const DeadlinePlanOptions& options) {
  return plan_from(problem, assign_to_queues(problem.queues), options.most_nodes);
}

DeadlinePlan plan_earliest_deadline(const DeadlineProblem& problem) {
  Queues queues(problem, 0);
  std::vector<QueueMachine>& machines = queues.machines();
  const size_t jobs = problem.queues.durations.size();
  std::vector<int> order(jobs);
  std::iota(order.begin(), order.end(), 0);
  const auto deadline = [&](int job) {
    return *std::min_element(problem.deadlines[job].begin(), problem.deadlines[job].end());
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return deadline(a) < deadline(b); });
  std::vector<int64_t> end(machines.size());
  for (size_t m = 0; m < machines.size(); ++m) end[m] = machines[m].free_at;
  std::vector<std::vector<int>> queue(machines.size());
  int64_t now = 0;  // jobs start in their order, so none before the one ahead of it
  for (const int job : order) {
    // The first machine to be free takes it; of several at once, the fastest for it.
    size_t chosen = machines.size();
    const auto start_on = [&](size_t m) { return std::max(end[m], now); };
    for (size_t m = 0; m < machines.size(); ++m) {
      if (!queues.runs_on(job, machines[m])) continue;
      if (chosen == machines.size() || start_on(m) < start_on(chosen) ||
          (start_on(m) == start_on(chosen) &&
           queues.on(job, machines[m]).duration < queues.on(job, machines[chosen]).duration)) {
        chosen = m;
      }
    }
    CHECK(chosen < machines.size(), "a job that no machine can run was to be planned");
    now = start_on(chosen);
    queue[chosen].push_back(job);
    end[chosen] = now + queues.on(job, machines[chosen]).duration;
  }
  for (size_t m = 0; m < machines.size(); ++m) queues.keep_queue(machines[m], queue[m]);
  return queues.plan();
}

DeadlinePlan plan_with_deadlines(const DeadlineProblem& problem, const DeadlinePlanOptions& options) {
  const std::vector<QueuePlace> matched = assign_to_queues(problem.queues);
  DeadlinePlan best = plan_from(problem, matched, options.most_nodes);
  if (best.cost.tardiness == 0 && is_shortest_first(problem, best, matched)) return best;  // none has a smaller sum
  const auto improved = [&](const DeadlinePlan& plan, bool only_late) {
    Queues queues(problem, 0);
    queues.adopt(plan.places);
    Improver(queues, only_late ? options.most_steps / 4 : options.most_steps).run(only_late);
    return plan_from(problem, queues.plan().places, options.most_nodes);
  };
  const auto consider = [&](const DeadlinePlan& start) {
    DeadlinePlan other = improved(start, true);
    if (other.cost < best.cost) best = std::move(other);
  };
  consider(DeadlinePlan(best));
  const DeadlinePlan urgent = plan_earliest_deadline(problem);
  if (best.cost.tardiness > 0) {
    if (problem.queues.durations.size() <= static_cast<size_t>(options.greedy_jobs)) {
      consider(plan_greedily(problem));
    }
    consider(urgent);
  }
  return improved(best, false);
}

}  // namespace forerun::cluster
