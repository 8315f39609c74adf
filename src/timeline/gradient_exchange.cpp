#include "timeline/gradient_exchange.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.h"
#include "graph/op_modules.h"
#include "timeline/simulator.h"

namespace forerun {
namespace {

// How long a message occupies the exchange from its beginning to its end.
Nanoseconds duration_of(const GradientExchange& exchange, Bytes bytes) {
  Nanoseconds sum{};
  for (const ExchangePart& part : exchange.parts(bytes)) sum += part.busy + part.lag;
  return sum;
}

std::vector<size_t> merged_ends(std::span<const Bytes> gradients, std::span<const Nanoseconds> ready,
                                const GradientExchange& exchange) {
  CHECK(ready.size() == gradients.size(), "merging goes by when gradients are ready");
  std::vector<size_t> ends;
  Nanoseconds free{};  // when the network is done with the messages before
  Bytes size{};
  for (size_t i = 0; i + 1 < gradients.size(); ++i) {
    size += gradients[i];
    const Nanoseconds leaves = std::max(free, ready[i]);
    if (ready[i + 1] < leaves + exchange.latency) continue;  // nothing is lost by waiting for the next
    ends.push_back(i);
    free = leaves + duration_of(exchange, size);
    size = Bytes(0);
  }
  return ends;
}

class Exchanger {
 public:
  Exchanger(GraphEdit& edit, const GradientExchange& exchange)
      : edit_(edit), exchange_(exchange), busy_(exchange.lanes.size()) {
    CHECK(static_cast<bool>(exchange.parts), "an exchange without costs");
    for (size_t i = 0; i < exchange.lanes.size(); ++i) {
      counts.lanes.push_back(
          edit_.add_lane({LaneKind::network_link, 0, static_cast<int64_t>(i), false, exchange.lanes[i]}));
    }
  }

  // The last task of each gradient's exchange, by gradient: several where it is cut into slices.
  std::vector<std::vector<TaskId>> add(const BackwardPass& pass, const std::vector<Nanoseconds>& ready) {
    std::vector<std::vector<TaskId>> arrived(pass.gradients.size());
    std::vector<Bytes> sizes;
    for (const TaskGradient& gradient : pass.gradients) sizes.push_back(gradient.bytes);
    size_t first = 0;
    for (const size_t end : ends_of(pass, sizes, ready)) {
      send(pass, first, end, arrived);
      first = end + 1;
      ++counts.messages;
    }
    for (const TaskGradient& gradient : pass.gradients) counts.bytes += gradient.bytes;
    return arrived;
  }

  Task gpu_task(const char* name, Nanoseconds duration, StepPhase phase) {
    Task task;
    task.kind = TaskKind::kernel;
    task.phase = phase;
    task.duration = duration;
    task.name = edit_.name(name);
    task.op_instance = task.event = kNoLink;
    return task;
  }

  ExchangeCounts counts;

 private:
  [[nodiscard]] std::vector<size_t> ends_of(const BackwardPass& pass, const std::vector<Bytes>& sizes,
                                            const std::vector<Nanoseconds>& ready) const {
    if (exchange_.grouping != Grouping::units) return message_ends(sizes, ready, exchange_);
    std::vector<size_t> ends;
    const std::vector<bool> units = unit_ends(edit_.original(), pass.gradients);
    for (size_t i = 0; i < units.size(); ++i) {
      if (units[i]) ends.push_back(i);
    }
    return units.empty() ? message_ends(sizes, ready, exchange_) : ends;
  }

  void send(const BackwardPass& pass, size_t first, size_t end, std::vector<std::vector<TaskId>>& arrived) {
    Bytes bytes{};
    uint32_t soonest = UINT32_MAX;  // use of any of its parameters
    std::vector<TaskId> sources;
    for (size_t i = first; i <= end; ++i) {
      const TaskGradient& gradient = pass.gradients[i];
      bytes += gradient.bytes;
      if (gradient.used.valid()) soonest = std::min(soonest, gradient.used.value);
      if (sources.empty() || sources.back() != gradient.ready) sources.push_back(gradient.ready);
    }
    if (exchange_.before) {
      const TaskId made =
          edit_.insert_after(sources.back(), gpu_task("compression", exchange_.before(bytes), StepPhase::backward));
      for (const TaskId source : sources) edit_.depend(made, {source, Anchor::end, Nanoseconds(0)});
      sources = {made};
    }
    const int32_t priority = exchange_.prioritised ? -static_cast<int32_t>(std::min(soonest, uint32_t{INT32_MAX})) : 0;
    const int64_t slice = exchange_.slice.value > 0 ? exchange_.slice.value : std::max<int64_t>(bytes.value, 1);
    for (int64_t sent = 0; sent == 0 || sent < bytes.value; sent += slice) {
      const TaskId last = send_slice(Bytes(std::min(slice, bytes.value - sent)), sources, priority);
      ++counts.slices;
      if (!last.valid()) continue;
      for (size_t i = first; i <= end; ++i) arrived[i].push_back(last);
    }
  }

  // Its tasks, one behind the other; the last one. Invalid where the exchange takes no time at all.
  TaskId send_slice(Bytes bytes, const std::vector<TaskId>& sources, int32_t priority) {
    TaskId last;
    Nanoseconds lag{};
    const std::vector<ExchangePart> parts = exchange_.parts(bytes);
    for (const ExchangePart& part : parts) {
      Task task;
      task.kind = TaskKind::communication;
      task.phase = StepPhase::backward;
      task.duration = part.busy;
      task.lane = counts.lanes[part.lane];
      task.priority = priority;
      task.name = edit_.name("exchange of gradients");
      task.op_instance = task.event = kNoLink;
      const TaskId made = edit_.append(task);
      busy_[part.lane] += part.busy;
      counts.exchange = std::max(counts.exchange, busy_[part.lane]);
      if (part.slowed > 1 || part.traffic > 0) counts.contending.push_back({made, part.slowed, part.traffic});
      if (last.valid()) {
        edit_.depend(made, {last, Anchor::end, lag});
      } else {
        for (const TaskId source : sources) edit_.depend(made, {source, Anchor::end, Nanoseconds(0)});
      }
      last = made;
      lag = part.lag;
    }
    return last.valid() && lag.value > 0 ? waited(last, lag) : last;
  }

  // What arrives `lag` after the end of a task: a task that takes no time, on a lane without order.
  TaskId waited(TaskId task, Nanoseconds lag) {
    if (!arrivals_.valid()) arrivals_ = edit_.add_lane({LaneKind::network_link, 0, -1, false, "arrivals"});
    Task mark;
    mark.kind = TaskKind::mark;
    mark.lane = arrivals_;
    mark.name = edit_.name("arrival");
    mark.op_instance = mark.event = kNoLink;
    const TaskId made = edit_.append(mark);
    edit_.depend(made, {task, Anchor::end, lag});
    return made;
  }

  GraphEdit& edit_;
  const GradientExchange& exchange_;
  std::vector<Nanoseconds> busy_;  // by lane of the exchange
  LaneId arrivals_;
};

// The update as it is, behind everything that arrives.
void hold_update(GraphEdit& edit, const BackwardPass& pass, const std::vector<std::vector<TaskId>>& arrived,
                 const GradientExchange& exchange, Exchanger& exchanger) {
  if (pass.updates.empty()) return;
  TaskId held = pass.updates.front();
  if (exchange.after) {
    Bytes bytes{};
    for (const TaskGradient& gradient : pass.gradients) bytes += gradient.bytes;
    held = edit.insert_before(held, exchanger.gpu_task("decompression", exchange.after(bytes), StepPhase::update));
  }
  std::vector<TaskId> all;
  for (const auto& list : arrived) all.insert(all.end(), list.begin(), list.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  // Updates on other streams wait as well.
  std::vector<LaneId> lanes;
  for (const TaskId update : pass.updates) {
    const LaneId lane = edit.original().lane(update);
    if (std::find(lanes.begin(), lanes.end(), lane) != lanes.end()) continue;
    lanes.push_back(lane);
    const TaskId first = update == pass.updates.front() ? held : update;
    for (const TaskId task : all) edit.depend(first, {task, Anchor::end, Nanoseconds(0)});
  }
}

// The update taken apart: every parameter's share stands before the task that uses it in the next iteration.
void spread_update(GraphEdit& edit, const BackwardPass& pass, const BackwardPass* next,
                   const std::vector<std::vector<TaskId>>& arrived, Exchanger& exchanger,
                   std::vector<CarriedDependency>& carried) {
  double total = 0, bytes = 0;
  for (const TaskId update : pass.updates) total += static_cast<double>(edit.duration(update).value);
  for (const TaskGradient& gradient : pass.gradients) bytes += static_cast<double>(gradient.bytes.value);
  edit.remove(pass.updates);
  for (size_t i = 0; i < pass.gradients.size(); ++i) {
    const TaskGradient& own = pass.gradients[i];
    const TaskId used = next == nullptr ? own.used : i < next->gradients.size() ? next->gradients[i].used : TaskId();
    if (!used.valid()) continue;
    const double share = bytes > 0 ? static_cast<double>(own.bytes.value) / bytes : 0;
    const TaskId update = edit.insert_before(
        used, exchanger.gpu_task("update", Nanoseconds(static_cast<int64_t>(total * share)), StepPhase::update));
    for (const TaskId task : arrived[i]) {
      const Dependency on = {task, Anchor::end, Nanoseconds(0)};
      if (next == nullptr) {
        carried.push_back({update, on});
      } else {
        edit.depend(update, on);
      }
    }
  }
}

}  // namespace

std::vector<bool> unit_ends(const TaskGraph& tasks, std::span<const TaskGradient> gradients) {
  std::set<std::string_view> blocks;
  std::vector<std::string_view> units;
  for (const TaskGradient& gradient : gradients) {
    units.push_back(gradient.used.valid() ? block_of(tasks.text(tasks.module(gradient.used))) : std::string_view());
    if (!units.back().empty()) blocks.insert(units.back());
  }
  if (blocks.size() < 2) return {};
  std::vector<bool> ends(units.size(), true);
  for (size_t i = 0; i + 1 < units.size(); ++i) ends[i] = units[i] != units[i + 1];
  return ends;
}

std::vector<size_t> message_ends(std::span<const Bytes> gradients, std::span<const Nanoseconds> ready,
                                 const GradientExchange& exchange) {
  std::vector<size_t> ends;
  if (exchange.grouping == Grouping::each) {
    for (size_t i = 0; i < gradients.size(); ++i) ends.push_back(i);
  } else if (exchange.grouping == Grouping::buckets || exchange.grouping == Grouping::units) {
    ends = bucket_ends(gradients, exchange.first_bucket, exchange.bucket);
  } else if (exchange.grouping == Grouping::merged) {
    ends = merged_ends(gradients, ready, exchange);
  }
  if (!gradients.empty() && (ends.empty() || ends.back() + 1 != gradients.size())) ends.push_back(gradients.size() - 1);
  return ends;
}

ExchangeCounts add_exchange(GraphEdit& edit, const std::vector<BackwardPass>& passes, const GradientExchange& exchange,
                            std::vector<CarriedDependency>& carried) {
  Exchanger exchanger(edit, exchange);
  Simulation simulation;
  if (exchange.grouping == Grouping::merged) simulation = simulate(edit.original());
  for (size_t p = 0; p < passes.size(); ++p) {
    std::vector<Nanoseconds> ready;
    if (!simulation.start.empty()) {
      for (const TaskGradient& gradient : passes[p].gradients) {
        ready.push_back(simulation.end_of(edit.original(), gradient.ready));
      }
    }
    const auto& arrived = exchanger.counts.arrived.emplace_back(exchanger.add(passes[p], ready));
    if (!exchange.awaited) continue;
    const BackwardPass* next = p + 1 < passes.size() ? &passes[p + 1] : nullptr;
    if (!exchange.crosses) {
      hold_update(edit, passes[p], arrived, exchange, exchanger);
    } else if (next != nullptr || passes.size() == 1) {
      spread_update(edit, passes[p], next, arrived, exchanger, carried);
    } else {
      edit.remove(passes[p].updates);  // behind the end of the trace
    }
  }
  if (!passes.empty())
    exchanger.counts.bytes = Bytes(exchanger.counts.bytes.value / static_cast<int64_t>(passes.size()));
  return exchanger.counts;
}

Result<TaskGraph> build_contended(const GraphEdit& edit, std::span<const ContendingTask> contending,
                                  std::vector<TaskId>& now) {
  auto alone = edit.build(&now);
  if (!alone || contending.empty()) return alone;
  std::vector<ContendingTask> tasks(contending.begin(), contending.end());
  for (ContendingTask& task : tasks) task.task = now[task.task.value];
  return contended(*alone, tasks);
}

Result<ExchangedTasks> exchanged_tasks(const TaskGraph& iteration, const std::vector<BackwardPass>& passes,
                                       const GradientExchange& exchange, const AlsoChange& also) {
  GraphEdit edit(iteration);
  ExchangedTasks made;
  ExchangeCounts counts = add_exchange(edit, passes, exchange, made.carried);
  // All in one message that the update waits for runs beside nothing.
  if (exchange.grouping == Grouping::whole && exchange.awaited && !exchange.crosses) counts.contending.clear();
  if (also) also(edit, passes, counts, made.carried);
  auto tasks = build_contended(edit, counts.contending, made.now);
  if (!tasks) return tasks.error();
  made.tasks = std::move(*tasks);
  made.exchange = counts.exchange;
  for (CarriedDependency& link : made.carried) {
    link.after = made.now[link.after.value];
    link.on.before = made.now[link.on.before.value];
  }
  made.now.resize(iteration.size());
  return made;
}

GatherCounts add_gathers(GraphEdit& edit, std::span<const ParameterUse> uses, const ParameterGathering& gathering) {
  GatherCounts counts;
  std::vector<ParameterUse> users;  // the first of each message
  ParameterUse user;
  Bytes bytes{};
  const auto gather = [&] {
    const ExchangePart part = gathering.costs(bytes);
    Task task;
    task.kind = TaskKind::communication;
    task.phase = gathering.phase;
    task.duration = part.busy + part.lag;
    task.lane = gathering.lane;
    task.priority = 1;  // issued before the gradients of the blocks that wait with it
    task.name = edit.name("gathering of parameters");
    task.op_instance = task.event = kNoLink;
    const TaskId gathered = edit.append(task);
    counts.exchange += task.duration;
    if (part.slowed > 1 || part.traffic > 0) counts.contending.push_back({gathered, part.slowed, part.traffic});
    if (users.size() >= 2) {
      const ParameterUse& before = users[users.size() - 2];
      edit.depend(gathered, {before.user, Anchor::start, Nanoseconds(0)});
      if (before.sends.valid()) edit.depend(gathered, {before.sends, Anchor::end, Nanoseconds(0)});
    } else {
      counts.first.push_back(gathered);
    }
    edit.depend(user.user, {gathered, Anchor::end, Nanoseconds(0)});
    users.push_back(user);
    user = ParameterUse();
    bytes = Bytes(0);
  };
  for (size_t i = 0; i < uses.size(); ++i) {
    if (!user.user.valid()) user = uses[i];
    bytes += uses[i].bytes;
    const bool shared = i + 1 < uses.size() && uses[i + 1].user == uses[i].user;  // one task waits for both
    const bool full = gathering.units ? uses[i].closes : bytes >= gathering.message && !shared;
    if (full && bytes.value > 0) gather();
  }
  if (bytes.value > 0) gather();
  return counts;
}

Nanoseconds EvenExchange::exposed(Nanoseconds backward) const {
  Nanoseconds most{};
  for (const Term& term : terms) {
    most = std::max(most, term.tail - Nanoseconds(std::llround(term.hidden * static_cast<double>(backward.value))));
  }
  return most;
}

EvenExchange even_exchange(Bytes gradients, const GradientExchange& exchange) {
  EvenExchange even;
  if (gradients.value <= 0) return even;
  const Bytes first = std::min(exchange.first_bucket, gradients);
  const int64_t others = (gradients - first).value / std::max<int64_t>(exchange.bucket.value, 1);
  const Bytes last = gradients - first - exchange.bucket * others;
  const Nanoseconds first_time = duration_of(exchange, first), bucket_time = duration_of(exchange, exchange.bucket),
                    last_time = last.value > 0 ? duration_of(exchange, last) : Nanoseconds(0);
  const auto add = [&](Bytes before, Nanoseconds tail) {
    even.terms.push_back({1 - static_cast<double>(before.value) / static_cast<double>(gradients.value), tail});
  };
  // In between the terms grow or shrink evenly from one full bucket to the next: the outermost decide.
  add(first, first_time + bucket_time * others + last_time);
  if (others > 0) add(first + exchange.bucket, bucket_time * others + last_time);
  if (others > 1) add(first + exchange.bucket * others, bucket_time + last_time);
  if (last.value > 0) add(gradients, last_time);
  return even;
}

}  // namespace forerun
