#include "timeline/graph_edit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "timeline/simulator.h"

namespace forerun {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

constexpr double kLongestIteration = 1e17;  // nanoseconds, three years: several copies of it still can be counted

Nanoseconds scaled(Nanoseconds time, double factor) {
  return Nanoseconds(std::llround(std::min(static_cast<double>(time.value) * factor, kLongestIteration)));
}

uint64_t pair_key(TaskId after, TaskId before) { return uint64_t{after.value} << 32 | before.value; }

}  // namespace

Predicate is_kind(TaskKind kind) {
  return [kind](const TaskGraph& graph, TaskId id) { return graph.kind(id) == kind; };
}
Predicate is_on_gpu() {
  return [](const TaskGraph& graph, TaskId id) { return on_gpu(graph.kind(id)); };
}
Predicate is_on_lane(LaneKind kind) {
  return [kind](const TaskGraph& graph, TaskId id) { return graph.lane_of(id).kind == kind; };
}
Predicate in_phase(StepPhase phase) {
  return [phase](const TaskGraph& graph, TaskId id) { return graph.phase(id) == phase; };
}
Predicate named(std::string part) {
  return [part = std::move(part)](const TaskGraph& graph, TaskId id) {
    return contains(graph.text(graph.name(id)), part);
  };
}
Predicate of_op(std::string part) {
  return
      [part = std::move(part)](const TaskGraph& graph, TaskId id) { return contains(graph.text(graph.op(id)), part); };
}
Predicate of_module(std::string part) {
  return [part = std::move(part)](const TaskGraph& graph, TaskId id) {
    return contains(graph.text(graph.module(id)), part);
  };
}
Predicate both(Predicate a, Predicate b) {
  return
      [a = std::move(a), b = std::move(b)](const TaskGraph& graph, TaskId id) { return a(graph, id) && b(graph, id); };
}
Predicate either(Predicate a, Predicate b) {
  return
      [a = std::move(a), b = std::move(b)](const TaskGraph& graph, TaskId id) { return a(graph, id) || b(graph, id); };
}
Predicate negated(Predicate a) {
  return [a = std::move(a)](const TaskGraph& graph, TaskId id) { return !a(graph, id); };
}

std::vector<TaskId> select(const TaskGraph& graph, const Predicate& predicate) {
  std::vector<TaskId> found;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    if (predicate(graph, TaskId(i))) found.emplace_back(i);
  }
  return found;
}

GraphEdit::GraphEdit(const TaskGraph& graph)
    : graph_(graph), removed_(graph.size(), false), lanes_(graph.lanes().begin(), graph.lanes().end()) {
  tasks_.reserve(graph.size());
  for (uint32_t i = 0; i < graph.size(); ++i) tasks_.push_back(graph[TaskId(i)]);
  added_.resize(graph.size());
}

void GraphEdit::scale(std::span<const TaskId> tasks, double factor) {
  CHECK(factor >= 0 && std::isfinite(factor), "durations scaled by a negative or infinite factor");
  for (const TaskId task : tasks) tasks_[task.value].duration = scaled(tasks_[task.value].duration, factor);
}

void GraphEdit::scale_gaps(std::span<const TaskId> tasks, double factor) {
  CHECK(factor >= 0 && std::isfinite(factor), "gaps scaled by a negative or infinite factor");
  for (const TaskId task : tasks) tasks_[task.value].gap = scaled(tasks_[task.value].gap, factor);
}

void GraphEdit::set_duration(TaskId task, Nanoseconds duration) { tasks_[task.value].duration = duration; }
void GraphEdit::set_priority(TaskId task, int32_t priority) { tasks_[task.value].priority = priority; }

void GraphEdit::remove(std::span<const TaskId> tasks) {
  for (const TaskId task : tasks) removed_[task.value] = true;
}

LaneId GraphEdit::add_lane(Lane lane) {
  lanes_.push_back(std::move(lane));
  return LaneId(lanes_.size() - 1);
}

NameId GraphEdit::name(std::string_view text) {
  const NameId known = (names_ ? *names_ : *graph_.names()).find(text);
  if (known.valid()) return known;
  if (!names_) names_ = std::make_shared<StringTable>(*graph_.names());
  return names_->intern(text);
}

TaskId GraphEdit::append(const Task& task) {
  tasks_.push_back(task);
  removed_.push_back(false);
  added_.emplace_back();
  appended_.push_back(static_cast<uint32_t>(tasks_.size() - 1));
  return TaskId(tasks_.size() - 1);
}

TaskId GraphEdit::insert_after(TaskId neighbour, Task task) {
  task.lane = tasks_[neighbour.value].lane;
  const TaskId added = append(task);
  appended_.pop_back();
  std::vector<uint32_t>& list = behind_[neighbour.value];
  list.insert(list.begin(), added.value);
  return added;
}

TaskId GraphEdit::insert_before(TaskId neighbour, Task task) {
  task.lane = tasks_[neighbour.value].lane;
  const TaskId added = append(task);
  appended_.pop_back();
  before_[neighbour.value].push_back(added.value);
  return added;
}

void GraphEdit::depend(TaskId after, const Dependency& on) { added_[after.value].push_back(on); }
void GraphEdit::release(TaskId after, TaskId before) { released_[pair_key(after, before)] = true; }
void GraphEdit::schedule(LaneId lane) { lanes_[lane.value].ordered = false; }

// All tasks, removed ones too, so that each lane's stand in the order they run.
std::vector<uint32_t> GraphEdit::order() const {
  std::vector<uint32_t> order;
  order.reserve(tasks_.size());
  const std::function<void(uint32_t)> visit = [&](uint32_t task) {
    if (const auto found = before_.find(task); found != before_.end()) {
      for (const uint32_t inserted : found->second) visit(inserted);
    }
    order.push_back(task);
    if (const auto found = behind_.find(task); found != behind_.end()) {
      for (const uint32_t inserted : found->second) visit(inserted);
    }
  };
  for (uint32_t i = 0; i < graph_.size(); ++i) visit(i);
  for (const uint32_t task : appended_) visit(task);
  return order;
}

// What a dependency on a removed task becomes.
class GraphEdit::Relinker {
 public:
  Relinker(const GraphEdit& edit, const std::vector<uint32_t>& order)
      : edit_(edit), lane_before_(edit.tasks_.size(), kNoLink) {
    std::vector<uint32_t> last(edit.lanes_.size(), kNoLink);
    for (const uint32_t task : order) {
      uint32_t& on_lane = last[edit.tasks_[task].lane.value];
      lane_before_[task] = on_lane;
      on_lane = task;
    }
    resolved_.resize(edit.tasks_.size());
    known_.assign(edit.tasks_.size(), false);
    // In lane order what a removed task stood behind is known before it, unless a dependency points backwards.
    for (const uint32_t task : order) {
      if (edit.removed_[task]) resolve(task);
    }
  }

  [[nodiscard]] std::vector<Dependency> dependencies(uint32_t task) const {
    std::vector<Dependency> found;
    // What stood before it on its lane is gone: what that waited for now holds back this one.
    const uint32_t before = lane_before_[task];
    const LaneId lane = edit_.tasks_[task].lane;
    if (before != kNoLink && edit_.removed_[before] && edit_.lanes_[lane.value].ordered) {
      for (const Dependency& on : resolved_[before]) {
        if (edit_.tasks_[on.before.value].lane != lane) add(found, on);
      }
    }
    each(task, [&](const Dependency& on) {
      if (!edit_.removed_[on.before.value]) {
        add(found, on);
        return;
      }
      for (Dependency instead : resolved_[on.before.value]) {
        instead.lag += on.lag;
        add(found, instead);
      }
    });
    return found;
  }

 private:
  template <class Visit>
  void each(uint32_t task, const Visit& visit) const {
    if (task < edit_.graph_.size()) {
      for (const Dependency& on : edit_.graph_.dependencies(TaskId(task))) {
        if (!edit_.released_.contains(pair_key(TaskId(task), on.before))) visit(on);
      }
    }
    for (const Dependency& on : edit_.added_[task]) visit(on);
  }

  // Of several on the same task the longest lag counts.
  static void add(std::vector<Dependency>& list, const Dependency& on) {
    for (Dependency& known : list) {
      if (known.before != on.before || known.anchor != on.anchor) continue;
      known.lag = std::max(known.lag, on.lag);
      return;
    }
    list.push_back(on);
  }

  void resolve(uint32_t task) {
    if (known_[task]) return;
    known_[task] = true;
    const auto take = [&](const Dependency& on) {
      if (!edit_.removed_[on.before.value]) {
        add(resolved_[task], on);
        return;
      }
      resolve(on.before.value);
      for (Dependency instead : resolved_[on.before.value]) {
        instead.lag += on.lag;
        add(resolved_[task], instead);
      }
    };
    if (lane_before_[task] != kNoLink) take({TaskId(lane_before_[task]), Anchor::end, Nanoseconds(0)});
    each(task, take);
  }

  const GraphEdit& edit_;
  std::vector<uint32_t> lane_before_;
  std::vector<std::vector<Dependency>> resolved_;  // of removed tasks
  std::vector<bool> known_;
};

Result<TaskGraph> GraphEdit::build(std::vector<TaskId>* renumbered) const {
  double total = 0;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (!removed_[i]) total += static_cast<double>(tasks_[i].duration.value) + static_cast<double>(tasks_[i].gap.value);
  }
  if (total >= kLongestIteration) {
    return Error{"the iteration would take more than three years", "what-if", "give numbers nearer to what there is"};
  }
  const std::vector<uint32_t> sequence = order();
  const Relinker relinker(*this, sequence);
  TaskGraphBuilder builder(names_ ? names_ : graph_.names());
  for (const Lane& lane : lanes_) builder.add_lane(lane);
  std::vector<TaskId> added(tasks_.size());
  for (const uint32_t task : sequence) {
    if (!removed_[task]) added[task] = builder.add(tasks_[task]);
  }
  for (const uint32_t task : sequence) {
    if (removed_[task]) continue;
    for (Dependency on : relinker.dependencies(task)) {
      on.before = added[on.before.value];
      builder.depend(added[task], on);
    }
  }
  std::vector<TaskId> moved;
  auto graph = std::move(builder).build(&moved);
  if (graph && renumbered != nullptr) {
    renumbered->assign(tasks_.size(), TaskId());
    for (size_t i = 0; i < added.size(); ++i) {
      if (added[i].valid()) (*renumbered)[i] = moved[added[i].value];
    }
  }
  return graph;
}

Result<TaskGraph> repeat(const TaskGraph& graph, int count, TaskId beginning, std::vector<std::vector<TaskId>>* copies,
                         std::span<const CarriedDependency> carried) {
  TaskGraphBuilder builder(graph.names());
  for (const Lane& lane : graph.lanes()) builder.add_lane(lane);
  std::vector<std::vector<TaskId>> ids(static_cast<size_t>(count));
  for (int k = 0; k < count; ++k) {
    for (uint32_t i = 0; i < graph.size(); ++i) {
      const TaskId added = builder.add(graph[TaskId(i)]);
      ids[static_cast<size_t>(k)].push_back(added);
      for (Dependency on : graph.dependencies(TaskId(i))) {
        if (k > 0 && on.before == beginning) continue;
        on.before = ids[static_cast<size_t>(k)][on.before.value];
        builder.depend(added, on);
      }
    }
    for (const CarriedDependency& link : carried) {
      if (k == 0) break;
      const auto copy = static_cast<size_t>(k);
      builder.depend(ids[copy][link.after.value], {ids[copy - 1][link.on.before.value], link.on.anchor, link.on.lag});
    }
  }
  std::vector<TaskId> renumbered;
  auto built = std::move(builder).build(&renumbered);
  for (auto& copy : ids) {
    for (TaskId& task : copy) task = built ? renumbered[task.value] : TaskId();
  }
  if (copies != nullptr) *copies = std::move(ids);
  return built;
}

Result<Nanoseconds> steady_iteration(const TaskGraph& graph, TaskId beginning,
                                     std::span<const CarriedDependency> carried) {
  constexpr int kCopies = 6, kFirst = 2;
  std::vector<std::vector<TaskId>> copies;
  const auto repeated = repeat(graph, kCopies, beginning, &copies, carried);
  if (!repeated) return repeated.error();
  const Simulation simulation = simulate(*repeated);
  const auto completion = [&](int copy) {
    Nanoseconds last{};
    for (const TaskId task : copies[static_cast<size_t>(copy)]) {
      last = std::max(last, simulation.end_of(*repeated, task));
    }
    return last;
  };
  return Nanoseconds((completion(kCopies - 1) - completion(kFirst - 1)).value / (kCopies - kFirst));
}

}  // namespace forerun
