// GraphEdit: the primitives that optimizations are made of: select, scale, insert, remove, schedule.
//
// Source: Daydream's primitives. An edit starts from a TaskGraph and gives another; the original stays. What is removed
// leaves no hole: what waited for it waits for what it waited for, and for the task before it on its lane. What is
// inserted stands next to a task of its lane. `schedule` frees a lane's order, so that priorities decide. Ids of the
// original stay valid in an edit; build() gives new ones.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "timeline/task_graph.h"

namespace forerun {

// What to select. Predicates combine with && and ! (as functions: both, negated).
using Predicate = std::function<bool(const TaskGraph&, TaskId)>;

Predicate is_kind(TaskKind kind);
Predicate is_on_gpu();                // kernels, copies, fills and communication
Predicate is_on_lane(LaneKind kind);  // host threads, streams, ...
Predicate in_phase(StepPhase phase);
Predicate named(std::string part);      // the task's own name contains it: kernels, calls
Predicate of_op(std::string part);      // the name of the outermost op contains it
Predicate of_module(std::string part);  // the layer's name contains it
Predicate both(Predicate a, Predicate b);
Predicate either(Predicate a, Predicate b);
Predicate negated(Predicate a);

std::vector<TaskId> select(const TaskGraph& graph, const Predicate& predicate);

class GraphEdit {
 public:
  explicit GraphEdit(const TaskGraph& graph);

  [[nodiscard]] const TaskGraph& original() const { return graph_; }

  // Durations times `factor`; scale_gaps: the gaps behind the tasks.
  void scale(std::span<const TaskId> tasks, double factor);
  void scale_gaps(std::span<const TaskId> tasks, double factor);
  void set_duration(TaskId task, Nanoseconds duration);
  void set_priority(TaskId task, int32_t priority);
  [[nodiscard]] Nanoseconds duration(TaskId task) const { return tasks_[task.value].duration; }

  // Gaps go with the tasks.
  void remove(std::span<const TaskId> tasks);
  [[nodiscard]] bool removed(TaskId task) const { return removed_[task.value]; }

  LaneId add_lane(Lane lane);
  NameId name(std::string_view text);
  // A task behind (or before) `neighbour`, on the neighbour's lane whatever `task.lane` says.
  TaskId insert_after(TaskId neighbour, Task task);
  TaskId insert_before(TaskId neighbour, Task task);
  // A task at the end of its lane.
  TaskId append(const Task& task);
  void depend(TaskId after, const Dependency& on);
  // Drops what holds `after` back by `before`; nothing where there is no such dependency.
  void release(TaskId after, TaskId before);

  // From now on the schedule decides the order on the lane: the earliest start, then the highest priority.
  void schedule(LaneId lane);

  // `renumbered`: the new id of each task of the edit, invalid where it was removed.
  Result<TaskGraph> build(std::vector<TaskId>* renumbered = nullptr) const;

 private:
  struct Edge {
    uint32_t after;
    Dependency on;
  };
  [[nodiscard]] std::vector<uint32_t> order() const;
  class Relinker;

  TaskGraph graph_;
  std::shared_ptr<StringTable> names_;  // a copy of the graph's once something is added
  std::vector<Task> tasks_;             // those of the graph, then inserted ones
  std::vector<bool> removed_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<Dependency>> added_;                           // dependencies added, by task
  std::unordered_map<uint32_t, std::vector<uint32_t>> before_, behind_;  // inserted next to a task, in lane order
  std::vector<uint32_t> appended_;
  std::unordered_map<uint64_t, bool> released_;  // after << 32 | before
};

// `count` copies of the graph one behind the other on every lane: back-to-back iterations. What a copy after the first
// has only because recording began (dependencies on `beginning`, a mark) is dropped. copies[k][task] is the id of the
// task in copy k. `carried`: what of a copy holds back the copy behind it.
struct CarriedDependency {
  TaskId after;   // in a copy
  Dependency on;  // in the one before it
};
Result<TaskGraph> repeat(const TaskGraph& graph, int count, TaskId beginning, std::vector<std::vector<TaskId>>* copies,
                         std::span<const CarriedDependency> carried = {});

// Time from the completion of one copy to that of the next, once it repeats.
Result<Nanoseconds> steady_iteration(const TaskGraph& graph, TaskId beginning,
                                     std::span<const CarriedDependency> carried = {});

}  // namespace forerun
