#include "timeline/task_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <queue>

namespace forerun {

std::string_view name_of(LaneKind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"host thread", "GPU stream", "network link", "data loader"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view name_of(TaskKind kind) {
  constexpr std::array<std::string_view, 10> kNames = {"op",     "launch", "runtime call",  "sync",         "kernel",
                                                       "memcpy", "memset", "communication", "data loading", "mark"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view name_of(StepPhase phase) {
  constexpr std::array<std::string_view, 5> kNames = {"none", "data", "forward", "backward", "update"};
  return kNames[static_cast<size_t>(phase)];
}

TaskGraph TaskGraph::with_durations(std::vector<Nanoseconds> durations) const {
  CHECK(durations.size() == size(), "one duration for each task");
  TaskGraph made = *this;
  made.duration_ = std::move(durations);
  return made;
}

void TaskGraph::swap_durations(std::vector<Nanoseconds>& durations) {
  CHECK(durations.size() == size(), "one duration for each task");
  duration_.swap(durations);
}

Task TaskGraph::operator[](TaskId id) const {
  const Links& links = links_[id.value];
  Task task;
  task.duration = duration(id);
  task.gap = gap(id);
  task.lane = lane(id);
  task.kind = kind(id);
  task.phase = phase(id);
  task.priority = links.priority;
  task.name = links.name;
  task.op = links.op;
  task.module = links.module;
  task.op_instance = links.op_instance;
  task.event = links.event;
  return task;
}

bool TaskGraph::all_lanes_ordered() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.ordered; });
}

const std::string& TaskGraph::text(NameId id) const {
  static const std::string kNothing;
  return id.valid() ? (*names_)[id] : kNothing;
}

std::string TaskGraph::describe(TaskId id) const {
  return fmt::format("{} '{}' (task {} on {})", name_of(kind(id)), text(name(id)), id.value, lane_of(id).name);
}

TaskGraphBuilder::TaskGraphBuilder(std::shared_ptr<const StringTable> names) { graph_.names_ = std::move(names); }

void TaskGraphBuilder::reserve(size_t tasks, size_t dependencies) {
  graph_.duration_.reserve(tasks);
  graph_.gap_.reserve(tasks);
  graph_.lane_.reserve(tasks);
  graph_.kind_.reserve(tasks);
  graph_.phase_.reserve(tasks);
  graph_.links_.reserve(tasks);
  graph_.dependencies_.reserve(dependencies);
  after_.reserve(dependencies);
}

LaneId TaskGraphBuilder::add_lane(Lane lane) {
  graph_.lanes_.push_back(std::move(lane));
  return LaneId(graph_.lanes_.size() - 1);
}

TaskId TaskGraphBuilder::add(const Task& task) {
  CHECK(task.lane.value < graph_.lanes_.size(), "a task on a lane that was not added");
  CHECK(task.duration.value >= 0, "a task of negative duration");
  graph_.duration_.push_back(task.duration);
  graph_.gap_.push_back(task.gap);
  graph_.lane_.push_back(task.lane);
  graph_.kind_.push_back(task.kind);
  graph_.phase_.push_back(task.phase);
  graph_.links_.push_back({task.priority, task.name, task.op, task.module, task.op_instance, task.event});
  return TaskId(graph_.duration_.size() - 1);
}

void TaskGraphBuilder::depend(TaskId after, const Dependency& on) {
  CHECK(after.value < size() && on.before.value < size(), "a dependency on a task that was not added");
  after_.push_back(after);
  graph_.dependencies_.push_back(on);
}

bool TaskGraphBuilder::forward() const {
  for (size_t i = 0; i < after_.size(); ++i) {
    if (graph_.dependencies_[i].before.value >= after_[i].value) return false;
  }
  return true;
}

// Puts the dependencies of each task side by side, in the order they were added.
void TaskGraphBuilder::sort_dependencies() {
  std::vector<uint32_t>& first = graph_.first_;
  first.assign(size() + 1, 0);
  for (const TaskId after : after_) ++first[after.value + 1];
  for (size_t i = 0; i < size(); ++i) first[i + 1] += first[i];
  if (!std::is_sorted(after_.begin(), after_.end())) {
    std::vector<uint32_t> place(first.begin(), first.end() - 1);
    std::vector<Dependency> sorted(after_.size());
    for (size_t i = 0; i < after_.size(); ++i) sorted[place[after_[i].value]++] = graph_.dependencies_[i];
    graph_.dependencies_ = std::move(sorted);
  }
  after_ = {};
}

// The tasks in an order that respects lanes and dependencies; of those that could come next, the one added first.
Result<std::vector<TaskId>> TaskGraphBuilder::topological_order() const {
  const size_t count = size();
  std::vector<uint32_t> blocked(count, 0);
  std::vector<uint32_t> lane_next(count, kNoLink);
  std::vector<uint32_t> lane_last(graph_.lanes_.size(), kNoLink);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t lane = graph_.lane_[i].value;
    if (!graph_.lanes_[lane].ordered) continue;
    if (lane_last[lane] != kNoLink) {
      lane_next[lane_last[lane]] = i;
      ++blocked[i];
    }
    lane_last[lane] = i;
  }
  std::vector<uint32_t> first(count + 1, 0);
  for (const Dependency& dependency : graph_.dependencies_) ++first[dependency.before.value + 1];
  for (size_t i = 0; i < count; ++i) first[i + 1] += first[i];
  std::vector<uint32_t> successors(after_.size());
  std::vector<uint32_t> place(first.begin(), first.end() - 1);
  for (size_t i = 0; i < after_.size(); ++i) {
    successors[place[graph_.dependencies_[i].before.value]++] = after_[i].value;
    ++blocked[after_[i].value];
  }
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t i = 0; i < count; ++i) {
    if (blocked[i] == 0) ready.push(i);
  }
  std::vector<TaskId> order;
  order.reserve(count);
  const auto release = [&](uint32_t task) {
    if (--blocked[task] == 0) ready.push(task);
  };
  while (!ready.empty()) {
    const uint32_t task = ready.top();
    ready.pop();
    order.emplace_back(task);
    if (lane_next[task] != kNoLink) release(lane_next[task]);
    for (uint32_t i = first[task]; i < first[task + 1]; ++i) release(successors[i]);
  }
  if (order.size() != count) return cycle_among(blocked);
  return order;
}

// Follows, from any task that never became ready, what blocks it until a task comes up twice.
Error TaskGraphBuilder::cycle_among(const std::vector<uint32_t>& blocked) const {
  std::vector<uint32_t> blocker(size(), kNoLink);
  for (size_t i = 0; i < after_.size(); ++i) {
    if (blocked[graph_.dependencies_[i].before.value] > 0)
      blocker[after_[i].value] = graph_.dependencies_[i].before.value;
  }
  std::vector<uint32_t> lane_last(graph_.lanes_.size(), kNoLink);
  for (uint32_t i = 0; i < size(); ++i) {
    const uint32_t lane = graph_.lane_[i].value;
    if (!graph_.lanes_[lane].ordered) continue;
    if (lane_last[lane] != kNoLink && blocked[lane_last[lane]] > 0 && blocker[i] == kNoLink)
      blocker[i] = lane_last[lane];
    lane_last[lane] = i;
  }
  uint32_t task = 0;
  while (blocked[task] == 0) ++task;
  std::vector<bool> seen(size(), false);
  while (!seen[task]) {
    seen[task] = true;
    task = blocker[task];
  }
  constexpr size_t kNamed = 8;
  std::string text = graph_.describe(TaskId(task));
  size_t length = 1;
  for (uint32_t at = blocker[task]; at != task; at = blocker[at], ++length) {
    if (length < kNamed) text += " waits for " + graph_.describe(TaskId(at));
  }
  text += length > kNamed ? fmt::format(" and {} more, which wait for the first", length - kNamed)
                          : " waits for " + graph_.describe(TaskId(task));
  if (length == 1) text = graph_.describe(TaskId(task)) + " waits for itself";
  return {"the dependencies form a cycle: " + text, "", "remove one of them"};
}

void TaskGraphBuilder::renumber(const std::vector<TaskId>& order, std::vector<TaskId>* renumbered) {
  std::vector<TaskId> new_id(size());
  for (size_t i = 0; i < order.size(); ++i) new_id[order[i].value] = TaskId(i);
  const auto permute = [&](auto& column) {
    auto sorted = column;
    for (size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i].value];
    column = std::move(sorted);
  };
  permute(graph_.duration_);
  permute(graph_.gap_);
  permute(graph_.lane_);
  permute(graph_.kind_);
  permute(graph_.phase_);
  permute(graph_.links_);
  for (size_t i = 0; i < after_.size(); ++i) {
    after_[i] = new_id[after_[i].value];
    graph_.dependencies_[i].before = new_id[graph_.dependencies_[i].before.value];
  }
  if (renumbered != nullptr) *renumbered = std::move(new_id);
}

Result<TaskGraph> TaskGraphBuilder::build(std::vector<TaskId>* renumbered) && {
  if (forward()) {
    if (renumbered != nullptr) {
      renumbered->clear();
      for (size_t i = 0; i < size(); ++i) renumbered->emplace_back(i);
    }
  } else {
    const auto order = topological_order();
    if (!order) return order.error();
    renumber(*order, renumbered);
  }
  sort_dependencies();
  return std::move(graph_);
}

}  // namespace forerun
