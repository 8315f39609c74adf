#include "whatif/editable_iteration.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/statistics.h"
#include "whatif/device_share.h"

namespace forerun::whatif {

Result<EditableIteration> EditableIteration::of(const Trace& trace, const OpTimer* timer) {
  auto made = dependency_graph(std::span(&trace, 1));
  if (!made) return made.error().within(trace.file);
  EditableIteration edited;
  edited.trace_ = &trace;
  edited.timer_ = timer;
  const TraceLinks links = link_events(trace);
  auto model = traced_model(trace, links);
  if (model) {
    edited.setup = model->setup;
    edited.variant.precision = model->setup.precision;
    edited.model_ = std::make_shared<const TracedModel>(std::move(*model));
  } else {
    edited.no_model_ = model.error();
    edited.setup.precision = edited.variant.precision = traced_precision(trace);
  }
  edited.innermost_ = links.op;
  edited.share_ = device_shares(trace);
  edited.graph_ = std::move(made->tasks);
  edited.steps_ = std::move(made->ranks.front());
  edited.beginning_ = TaskId(0);
  if (trace.device_shift != 0) {
    edited.assume(fmt::format("the device's clock contradicts the host's in this file: {:+.3f} ms added to it",
                              milliseconds(Nanoseconds(trace.device_shift))));
  }
  if (edited.steps_.marks.empty()) {
    return Error{"no host thread that drives an iteration", trace.file, "record CPU activities too"};
  }
  return edited;
}

void EditableIteration::use_timer(OpTimer timer) {
  own_timer_ = std::make_shared<const OpTimer>(std::move(timer));
  timer_ = own_timer_.get();
}

void EditableIteration::assume(std::string text) {
  if (std::find(assumptions.begin(), assumptions.end(), text) == assumptions.end()) {
    assumptions.push_back(std::move(text));
  }
}

uint32_t EditableIteration::call_of(TaskId task) const {
  if (model_ == nullptr) return kNoLink;
  const auto found = model_->call_of.find(graph_.op_instance(task));
  return found == model_->call_of.end() ? kNoLink : found->second;
}

std::optional<TracedOp> EditableIteration::op_of(TaskId task) const {
  const uint32_t event = graph_.event(task);
  if (!is_traced()) return event < model_ops_.size() ? std::optional(model_ops_[event]) : std::nullopt;
  return event == kNoLink ? std::nullopt : traced_op(*trace_, innermost_[event]);
}

uint64_t EditableIteration::op_key(TaskId task) const {
  const uint32_t event = graph_.event(task);
  if (!is_traced()) return event < model_ops_.size() ? event : UINT64_MAX;
  if (event == kNoLink || innermost_[event] == kNoIndex) return UINT64_MAX;
  const EventIndex op = innermost_[event];
  return uint64_t{trace_->events.name[op].value} << 32 | trace_->events.detail[op];
}

Status EditableIteration::commit(const GraphEdit& edit) {
  std::vector<TaskId> now;
  auto graph = edit.build(&now);
  if (!graph) return graph.error();
  graph_ = std::move(*graph);
  only_setup_changed_ = false;
  for (TaskId& mark : steps_.marks) mark = now[mark.value];
  for (CarriedDependency& link : carried) {
    link.after = now[link.after.value];
    link.on.before = now[link.on.before.value];
  }
  std::erase_if(carried, [](const CarriedDependency& link) { return !link.after.valid() || !link.on.before.valid(); });
  beginning_ = now[beginning_.value];
  return {};
}

// The first op that launches something pays for the start of recording: it gets the host time of its like, the middle one
// of the calls with the same name.
void EditableIteration::shorten_first_op(GraphEdit& edit) const {
  const std::vector<TaskId> launches = select(graph_, is_kind(TaskKind::launch));
  if (launches.empty() || graph_.op_instance(launches.front()) == kNoLink) return;
  const uint32_t first = graph_.op_instance(launches.front());
  std::map<uint32_t, int64_t> times;  // host time by call of the op
  std::vector<TaskId> tasks;
  for (const TaskId task : select(graph_, is_on_lane(LaneKind::host_thread))) {
    if (graph_.op(task) != graph_.op(launches.front())) continue;
    times[graph_.op_instance(task)] += (graph_.duration(task) + graph_.gap(task)).value;
    if (graph_.op_instance(task) == first) tasks.push_back(task);
  }
  const int64_t own = times[first];
  times.erase(first);
  std::vector<int64_t> others;
  for (const auto& [call, time] : times) others.push_back(time);
  if (others.empty()) return;
  const int64_t usual = upper_median(std::move(others));
  if (own <= usual) return;
  const double factor = static_cast<double>(usual) / static_cast<double>(own);
  edit.scale(tasks, factor);
  edit.scale_gaps(tasks, factor);
}

Status EditableIteration::remove_profiler(double slowdown) {
  GraphEdit edit(graph_);
  std::vector<TaskId> host;
  std::vector<TaskId> last(graph_.lanes().size());
  const auto calls = [&](TaskId task) {
    return graph_.kind(task) == TaskKind::launch || graph_.kind(task) == TaskKind::runtime;
  };
  for (const TaskId task : select(graph_, is_on_lane(LaneKind::host_thread))) {
    // A call behind a call of the same op: a library at work, which the profiler hardly slows down.
    TaskId& before = last[graph_.lane(task).value];
    const bool library = before.valid() && calls(before) && calls(task) && graph_.op_instance(task) != kNoLink &&
                         graph_.op_instance(before) == graph_.op_instance(task);
    if (!library && graph_.kind(task) != TaskKind::data_loading) host.push_back(task);
    before = task;
  }
  shorten_first_op(edit);
  edit.scale(host, 1 / slowdown);
  edit.scale_gaps(host, 1 / slowdown);
  host_slowdown_ = 1;
  return commit(edit);
}

size_t EditableIteration::iterations() const {
  return steps_.to_the_end ? steps_.marks.size() : std::max<size_t>(steps_.marks.size(), 1) - 1;
}

Nanoseconds EditableIteration::device_busy() const {
  Nanoseconds busy{};
  for (uint32_t i = 0; i < graph_.size(); ++i) {
    const bool network = graph_.lane_of(TaskId(i)).kind == LaneKind::network_link;
    if (on_gpu(graph_.kind(TaskId(i))) && !network) busy += graph_.duration(TaskId(i));
  }
  return Nanoseconds(busy.value / static_cast<int64_t>(std::max<size_t>(iterations(), 1)));
}

Nanoseconds EditableIteration::host_busy() const {
  Nanoseconds busy{};
  for (uint32_t i = 0; i < graph_.size(); ++i) {
    const TaskId task(i);
    const TaskKind kind = graph_.kind(task);
    if (graph_.lane_of(task).kind != LaneKind::host_thread || kind == TaskKind::sync || kind == TaskKind::mark)
      continue;
    busy += graph_.duration(task) + graph_.gap(task);
  }
  return Nanoseconds(busy.value / static_cast<int64_t>(std::max<size_t>(iterations(), 1)));
}

Nanoseconds EditableIteration::device_occupied() const {
  double occupied = 0;
  for (uint32_t i = 0; i < graph_.size(); ++i) {
    const TaskId task(i);
    if (graph_.kind(task) != TaskKind::kernel) continue;
    const uint32_t event = graph_.event(task);
    const double share = event < share_.size() ? share_[event] : 1;
    occupied += share * static_cast<double>(graph_.duration(task).value);
  }
  return Nanoseconds(static_cast<int64_t>(occupied / static_cast<double>(std::max<size_t>(iterations(), 1))));
}

// What stands on the main thread behind its last launch, from the first wait on: the end of recording.
std::vector<TaskId> EditableIteration::tail() const {
  const LaneId main = graph_.lane(steps_.marks.front());
  std::vector<TaskId> behind;
  bool waits = false;
  for (uint32_t i = 0; i < graph_.size(); ++i) {
    const TaskId task(i);
    if (graph_.lane(task) != main) continue;
    if (graph_.kind(task) == TaskKind::launch) {
      behind.clear();
      waits = false;
    }
    waits = waits || graph_.kind(task) == TaskKind::sync;
    const bool mark = std::find(steps_.marks.begin(), steps_.marks.end(), task) != steps_.marks.end();
    if (waits && !mark) behind.push_back(task);
  }
  return behind;
}

Result<Nanoseconds> EditableIteration::steady_state() const {
  GraphEdit edit(graph_);
  const std::vector<TaskId> behind = tail();
  edit.remove(behind);
  // What stands behind the removed waits no longer waits; nothing else was held by them.
  std::vector<TaskId> now;
  const auto once = edit.build(&now);
  if (!once) return once.error();
  std::vector<CarriedDependency> links = carried;
  for (CarriedDependency& link : links) {
    link.after = now[link.after.value];
    link.on.before = now[link.on.before.value];
  }
  return steady_iteration(*once, now[beginning_.value], links);
}

Nanoseconds EditableIteration::between_completions(const Simulation& simulation) const {
  const size_t count = steps_.marks.size() - 1;
  std::vector<Nanoseconds> begins, completed(count);
  for (const TaskId mark : steps_.marks) begins.push_back(simulation.start_of(mark));
  for (size_t i = 0; i < count; ++i) completed[i] = begins[i + 1];
  for (uint32_t i = 0; i < graph_.size(); ++i) {
    const TaskId task(i);
    if (!on_gpu(graph_.kind(task))) continue;
    Nanoseconds launched = simulation.start_of(task);
    for (const Dependency& on : graph_.dependencies(task)) {
      if (graph_.kind(on.before) == TaskKind::launch) launched = simulation.start_of(on.before);
    }
    const auto next = std::upper_bound(begins.begin(), begins.end(), launched);
    if (next == begins.begin() || next == begins.end()) continue;  // outside the steps
    Nanoseconds& last = completed[static_cast<size_t>(next - begins.begin()) - 1];
    last = std::max(last, simulation.end_of(graph_, task));
  }
  return Nanoseconds((completed.back() - completed.front()).value / static_cast<int64_t>(count - 1));
}

Result<Nanoseconds> EditableIteration::iteration_time() const {
  auto simulated = simulated_time();
  if (simulated) *simulated = std::max(*simulated, device_occupied());
  return simulated;
}

Result<Nanoseconds> EditableIteration::simulated_time() const {
  if (steps_.to_the_end || steps_.marks.size() < 3) return steady_state();
  return between_completions(simulate(graph_));
}

}  // namespace forerun::whatif
