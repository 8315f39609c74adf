// TaskGraph: a training iteration (or several) as tasks on execution lanes with dependencies; what simulators run.
//
// Source: Daydream's task graph. A task occupies its lane for its duration and then keeps it for its gap: time that no
// event explains (Python between two ops, the hardware's pause between two kernels). A gap below zero lets the next
// task of the lane begin before this one has ended, as kernels on one stream sometimes do. Lanes are host threads, GPU
// streams, network links and data loaders; on an ordered lane tasks run in the order of their ids, on others the
// schedule decides. A dependency holds a task back until another has begun or ended, plus a lag. Ids are numbered so
// that every dependency points from a smaller id to a larger one. Left out: tasks that share a lane's throughput.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/interner.h"
#include "base/quantity.h"
#include "base/result.h"

namespace forerun {

using TaskId = Id<struct TaskTag>;
using LaneId = Id<struct LaneTag>;

enum class LaneKind : uint8_t { host_thread, gpu_stream, network_link, data_loader };
std::string_view name_of(LaneKind kind);

struct Lane {
  LaneKind kind = LaneKind::host_thread;
  int32_t rank = 0;
  int64_t number = 0;   // of the thread or stream, as the trace has it
  bool ordered = true;  // tasks run in the order of their ids
  std::string name;     // "thread 1102", "stream 7"
};

enum class TaskKind : uint8_t {
  host_op,        // a framework op or annotation on a host thread
  launch,         // a runtime call that starts work on a GPU
  runtime,        // any other runtime call
  sync,           // a runtime call that waits for a GPU
  kernel,         // computation on a GPU
  memcpy,         // a copy by a GPU
  memset,         //
  communication,  // a collective's kernel, or its share of a network link
  data_loading,   // the next batch
  mark,           // the beginning or end of a step; takes no time
};
std::string_view name_of(TaskKind kind);
constexpr bool on_gpu(TaskKind kind) {
  return kind == TaskKind::kernel || kind == TaskKind::memcpy || kind == TaskKind::memset ||
         kind == TaskKind::communication;
}

enum class StepPhase : uint8_t { none, data, forward, backward, update };
std::string_view name_of(StepPhase phase);

constexpr uint32_t kNoLink = UINT32_MAX;

struct Task {
  Nanoseconds duration{};
  Nanoseconds gap{};
  LaneId lane;
  TaskKind kind = TaskKind::host_op;
  StepPhase phase = StepPhase::none;
  int32_t priority = 0;    // larger first, where the schedule decides
  NameId name;             // of the kernel, op or call
  NameId op;               // the outermost framework op it belongs to
  NameId module;           // the layer it belongs to
  uint32_t op_instance{};  // which call of the op: tasks of one call share it; kNoLink where unknown
  uint32_t event{};        // the trace's event it was made from; kNoLink where there is none
};

enum class Anchor : uint8_t { end, start };

// `before` holds a task back until its end (or start) plus `lag`.
struct Dependency {
  TaskId before;
  Anchor anchor = Anchor::end;
  Nanoseconds lag{};
};

class TaskGraph {
 public:
  [[nodiscard]] size_t size() const { return duration_.size(); }
  [[nodiscard]] Task operator[](TaskId id) const;

  [[nodiscard]] Nanoseconds duration(TaskId id) const { return duration_[id.value]; }
  [[nodiscard]] Nanoseconds gap(TaskId id) const { return gap_[id.value]; }
  [[nodiscard]] LaneId lane(TaskId id) const { return lane_[id.value]; }
  [[nodiscard]] TaskKind kind(TaskId id) const { return kind_[id.value]; }
  [[nodiscard]] StepPhase phase(TaskId id) const { return phase_[id.value]; }
  [[nodiscard]] int32_t priority(TaskId id) const { return links_[id.value].priority; }
  [[nodiscard]] NameId name(TaskId id) const { return links_[id.value].name; }
  [[nodiscard]] NameId op(TaskId id) const { return links_[id.value].op; }
  [[nodiscard]] NameId module(TaskId id) const { return links_[id.value].module; }
  [[nodiscard]] uint32_t op_instance(TaskId id) const { return links_[id.value].op_instance; }
  [[nodiscard]] uint32_t event(TaskId id) const { return links_[id.value].event; }

  // What holds the task back, besides the order of its lane.
  [[nodiscard]] std::span<const Dependency> dependencies(TaskId id) const {
    return std::span(dependencies_).subspan(first_[id.value], first_[id.value + 1] - first_[id.value]);
  }
  [[nodiscard]] size_t dependency_count() const { return dependencies_.size(); }

  [[nodiscard]] std::span<const Lane> lanes() const { return lanes_; }
  [[nodiscard]] const Lane& lane_of(TaskId id) const { return lanes_[lane_[id.value].value]; }
  [[nodiscard]] bool all_lanes_ordered() const;

  // The same tasks with other durations, one for each.
  [[nodiscard]] TaskGraph with_durations(std::vector<Nanoseconds> durations) const;
  // Puts others in the place of all durations, without a copy of the graph.
  void swap_durations(std::vector<Nanoseconds>& durations);

  // Strings of name, op and module. An invalid id is "".
  [[nodiscard]] const std::string& text(NameId id) const;
  [[nodiscard]] const std::shared_ptr<const StringTable>& names() const { return names_; }
  [[nodiscard]] std::string describe(TaskId id) const;  // "kernel 'gemm' (task 12 on stream 7)"

 private:
  friend class TaskGraphBuilder;
  struct Links {
    int32_t priority;
    NameId name, op, module;
    uint32_t op_instance, event;
  };
  // Apart from what simulators read, so that their loops touch little memory.
  std::vector<Nanoseconds> duration_, gap_;
  std::vector<LaneId> lane_;
  std::vector<TaskKind> kind_;
  std::vector<StepPhase> phase_;
  std::vector<Links> links_;
  std::vector<uint32_t> first_ = {0};  // into dependencies_; one more than tasks
  std::vector<Dependency> dependencies_;
  std::vector<Lane> lanes_;
  std::shared_ptr<const StringTable> names_ = std::make_shared<StringTable>();
};

// Tasks and dependencies as they come. Tasks of an ordered lane run in the order they are added.
class TaskGraphBuilder {
 public:
  // Names of tasks are ids in `names`.
  explicit TaskGraphBuilder(std::shared_ptr<const StringTable> names);
  TaskGraphBuilder() : TaskGraphBuilder(std::make_shared<StringTable>()) {}

  void reserve(size_t tasks, size_t dependencies);
  LaneId add_lane(Lane lane);
  TaskId add(const Task& task);
  void depend(TaskId after, const Dependency& on);
  [[nodiscard]] size_t size() const { return graph_.size(); }

  void set_duration(TaskId id, Nanoseconds duration) { graph_.duration_[id.value] = duration; }
  void set_gap(TaskId id, Nanoseconds gap) { graph_.gap_[id.value] = gap; }
  [[nodiscard]] Nanoseconds duration(TaskId id) const { return graph_.duration_[id.value]; }
  [[nodiscard]] Nanoseconds gap(TaskId id) const { return graph_.gap_[id.value]; }
  [[nodiscard]] LaneId lane(TaskId id) const { return graph_.lane_[id.value]; }

  // Renumbers tasks where a dependency points backwards; an Error names the tasks of a cycle. `renumbered`, where given,
  // becomes the new id of every task.
  Result<TaskGraph> build(std::vector<TaskId>* renumbered = nullptr) &&;

 private:
  [[nodiscard]] bool forward() const;
  void sort_dependencies();
  Result<std::vector<TaskId>> topological_order() const;
  [[nodiscard]] Error cycle_among(const std::vector<uint32_t>& blocked) const;
  void renumber(const std::vector<TaskId>& order, std::vector<TaskId>* renumbered);

  TaskGraph graph_;
  std::vector<TaskId> after_;  // beside graph_.dependencies_ until they are sorted
};

}  // namespace forerun
