#include "scale/gradient_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "timeline/exchange_costs.h"
#include "timeline/sharded_exchange.h"
#include "timeline/simulator.h"

namespace forerun::scale {
namespace {

constexpr int64_t kPartsInFlight = 4;     // ByteScheduler's credit
constexpr double kLongestExchange = 1e8;  // seconds: times are nanoseconds of 64 bits

Bytes gradient_bytes(const Block& block, const StateBytes& bytes) { return Bytes(block.parameters * bytes.gradient); }
Bytes gathered_bytes(const Block& block, const StateBytes& bytes) { return Bytes(block.parameters * bytes.gathered); }

// Passes of blocks on the stream of one GPU, and behind them a task that takes no time: the update.
class BlockTasks {
 public:
  BlockTasks(std::span<const Block> blocks, const ExchangeSetup& setup) : blocks_(blocks), setup_(setup) {
    stream_ = builder_.add_lane({LaneKind::gpu_stream, 0, 0, true, "stream 0"});
  }

  void forward() {
    uses.emplace_back();
    for (const Block& block : blocks_) {
      uses.back().push_back({add(forward_of(block), StepPhase::forward), gathered_bytes(block, setup_.bytes)});
    }
  }
  void backward() {
    uses.emplace_back();
    passes.emplace_back();
    for (size_t i = blocks_.size(); i-- > 0;) {
      const TaskId task = add(backward_of(blocks_[i]), StepPhase::backward);
      uses.back().push_back({task, gathered_bytes(blocks_[i], setup_.bytes)});
      const Bytes bytes = gradient_bytes(blocks_[i], setup_.bytes);
      if (bytes.value > 0) passes.back().gradients.push_back({task, TaskId(), bytes});
    }
  }
  // The messages of a backward pass's gradients, told to the uses that make them.
  void set_sends(size_t pass, const std::vector<std::vector<TaskId>>& arrived) {
    std::vector<ParameterUse>& list = uses[2 * pass + 1];
    size_t use = 0;
    for (size_t i = 0; i < arrived.size(); ++i) {
      while (list[use].user != passes[pass].gradients[i].ready) ++use;
      if (!arrived[i].empty()) list[use].sends = arrived[i].back();
    }
  }
  TaskId update() { return add(Nanoseconds(0), StepPhase::update); }
  Result<TaskGraph> build() { return std::move(builder_).build(); }

  std::vector<BackwardPass> passes;             // by backward pass
  std::vector<std::vector<ParameterUse>> uses;  // by pass of the model: forward, backward, forward, ...
  Nanoseconds computed;

 private:
  TaskId add(Nanoseconds duration, StepPhase phase) {
    Task task;
    task.kind = TaskKind::kernel;
    task.lane = stream_;
    task.phase = phase;
    task.duration = duration + Nanoseconds(std::llround(setup_.waits * static_cast<double>(duration.value)));
    task.op_instance = task.event = kNoLink;
    computed += duration;
    return builder_.add(task);
  }

  std::span<const Block> blocks_;
  const ExchangeSetup& setup_;
  TaskGraphBuilder builder_;
  LaneId stream_;
};

// Updated parameters go back to everyone, so many bytes of each.
void gather_updated(std::span<const Block> blocks, const ExchangeSetup& setup, int64_t bytes, ExchangeTimes& times) {
  Bytes sum;
  for (const Block& block : blocks) sum += Bytes(block.parameters * bytes);
  const Nanoseconds gathered = setup.network.all_gather(sum, setup.group);
  times.exchange += gathered;
  times.exposed += gathered;
}

// Behind the last backward pass.
Result<ExchangeTimes> replicas(std::span<const Block> blocks, const Plan& plan, const ExchangeSetup& setup) {
  BlockTasks tasks(blocks, setup);
  tasks.backward();
  tasks.passes.back().updates = {tasks.update()};
  const auto graph = tasks.build();
  if (!graph) return graph.error();
  GradientExchange exchange = replica_exchange(plan, setup.network, setup.group);
  exchange.bucket = setup.bucket;
  const auto sent = exchanged_tasks(*graph, tasks.passes, exchange);
  if (!sent) return sent.error();
  ExchangeTimes times{sent->exchange, simulate(sent->tasks).end - tasks.computed};
  if (plan.zero > 0) gather_updated(blocks, setup, setup.bytes.parameter, times);
  return times;
}

// Copies of a shard add up its gradients, behind the reduce-scatter that makes them.
void add_copies(const ExchangeSetup& setup, GradientExchange& exchange) {
  const Topology topology = setup.network.topology_of(setup.copies);
  exchange.parts = [&setup, topology, within = exchange.parts](Bytes bytes) {
    std::vector<ExchangePart> parts = within(bytes);
    const Bytes shard((bytes.value + setup.group.ranks - 1) / setup.group.ranks);
    parts.push_back(collective_part(setup.network.all_reduce(shard, setup.copies), topology));
    return parts;
  };
}

// ZeRO 2 and 3 over so many micro-batches.
Result<ExchangeTimes> sharded_passes(std::span<const Block> blocks, const Plan& plan, const ExchangeSetup& setup,
                                     int micro_batches) {
  BlockTasks tasks(blocks, setup);
  for (int i = 0; i < micro_batches; ++i) {
    tasks.forward();
    tasks.backward();
    // Without overlap gradients are away before anything else begins.
    const TaskId behind = tasks.update();
    if (!plan.overlap || i + 1 == micro_batches) tasks.passes.back().updates = {behind};
  }
  const auto graph = tasks.build();
  if (!graph) return graph.error();
  const Topology topology = setup.network.topology_of(setup.group);
  const Nanoseconds call = setup.network.call_of(setup.group);
  GradientExchange exchange = by_reduce_scatter(topology, call);
  exchange.grouping = plan.overlap ? Grouping::each : Grouping::whole;
  if (setup.copies.ranks > 1) add_copies(setup, exchange);
  GraphEdit edit(*graph);
  std::vector<CarriedDependency> carried;
  ExchangeCounts counts = add_exchange(edit, tasks.passes, exchange, carried);
  if (plan.zero >= 3) {
    const ParameterGathering gathering{
        .lane = counts.lanes.front(),
        .costs = [&](Bytes bytes) { return collective_part(call + all_gather(bytes, topology), topology); },
        .message = Bytes(1)};
    for (size_t pass = 0; plan.overlap && pass < tasks.passes.size(); ++pass) {
      tasks.set_sends(pass, counts.arrived[pass]);
    }
    for (size_t i = 0; i < tasks.uses.size(); i += plan.reshard ? 1 : 2) {  // of a backward pass, unless all is there
      const GatherCounts gathers = add_gathers(edit, tasks.uses[i], gathering);
      counts.exchange += gathers.exchange;
      counts.contending.insert(counts.contending.end(), gathers.contending.begin(), gathers.contending.end());
      if (i == 0) continue;
      for (const TaskId first : gathers.first) {
        const ParameterUse& before = tasks.uses[i - 1].back();
        edit.depend(first, {before.user, Anchor::start, Nanoseconds(0)});
        if (before.sends.valid()) edit.depend(first, {before.sends, Anchor::end, Nanoseconds(0)});
      }
    }
  }
  std::vector<TaskId> now;
  const auto sent = build_contended(edit, counts.contending, now);
  if (!sent) return sent.error();
  return ExchangeTimes{counts.exchange, simulate(*sent).end - tasks.computed};
}

Result<ExchangeTimes> sharded(std::span<const Block> blocks, const Plan& plan, const ExchangeSetup& setup) {
  const auto first = sharded_passes(blocks, plan, setup, 1);
  if (!first) return first;
  ExchangeTimes times = *first;
  if (plan.micro_batches > 1) {
    const auto both = sharded_passes(blocks, plan, setup, 2);
    if (!both) return both;
    const auto all = static_cast<double>((std::max(both->exchange, both->exposed)).value) * 1e-9 *
                     static_cast<double>(plan.micro_batches);
    if (all > kLongestExchange) {
      return Error{fmt::format("{} micro-batches would exchange for {:.0f} days", plan.micro_batches, all / 86400),
                   "--global-batch", "give a smaller one, or a larger --micro-batch"};
    }
    times.exposed += (both->exposed - first->exposed) * (plan.micro_batches - 1);
    times.exchange += (both->exchange - first->exchange) * (plan.micro_batches - 1);
  }
  if (plan.zero == 2) gather_updated(blocks, setup, setup.bytes.gathered, times);
  return times;
}

// No node waits for another: a step takes its own computation and exchange, or what the servers can serve.
ExchangeTimes asynchronous(std::span<const Block> blocks, const Plan& plan, const ExchangeSetup& setup) {
  Bytes gradients;
  Nanoseconds computed;
  for (const Block& block : blocks) {
    gradients += gradient_bytes(block, setup.bytes);
    computed += (forward_of(block) + backward_of(block)) * plan.micro_batches;
  }
  const GradientExchange exchange = replica_exchange(plan, setup.network, setup.group);
  std::vector<Nanoseconds> busy(exchange.lanes.size());
  Nanoseconds total;
  for (const ExchangePart& part : exchange.parts(gradients)) {
    busy[part.lane] += part.busy;
    total += part.busy + part.lag;
  }
  const Nanoseconds busiest = *std::max_element(busy.begin(), busy.end());
  const Nanoseconds step = plan.overlap ? std::max(computed, busiest) : computed + total;
  return {total, step - computed};
}

Grouping grouping_of(const Plan& plan) {
  if (!plan.overlap) return Grouping::whole;
  switch (plan.schedule) {
    case Schedule::buckets: return plan.exchange == Exchange::all_reduce ? Grouping::buckets : Grouping::each;
    case Schedule::whole: return Grouping::whole;
    case Schedule::merged: return Grouping::merged;
    case Schedule::each:
    case Schedule::prioritised: return Grouping::each;
  }
  return Grouping::buckets;
}

}  // namespace

Nanoseconds forward_of(const Block& block) { return block.forward + block.forward_exchange; }

Nanoseconds backward_of(const Block& block) { return block.backward + block.backward_exchange; }

GradientExchange replica_exchange(const Plan& plan, const Network& network, const Group& group) {
  const Topology topology = network.topology_of(group);
  const Nanoseconds call = network.call_of(group);
  const bool cut = plan.schedule == Schedule::prioritised;
  GradientExchange exchange;
  if (plan.exchange != Exchange::all_reduce) {
    const int64_t servers = std::clamp<int64_t>(plan.servers, 1, std::max<int64_t>(topology.nodes, 1));
    exchange = by_servers({.topology = topology, .servers = servers, .colocated = true});
    exchange.awaited = plan.exchange == Exchange::servers;
  } else if (plan.zero > 0) {
    exchange = by_reduce_scatter(topology, call);
  } else {
    exchange = by_all_reduce({.topology = topology, .per_message = call, .in_flight = cut ? kPartsInFlight : 1});
  }
  exchange.grouping = grouping_of(plan);
  if (plan.zero == 3 && exchange.grouping == Grouping::buckets) exchange.grouping = sharded_grouping(plan.zero);
  if (cut) exchange.slice = kServerPart;
  exchange.prioritised = cut;
  return exchange;
}

Result<ExchangeTimes> exchange_of(std::span<const Block> blocks, const Plan& plan, const ExchangeSetup& setup) {
  if (plan.replicas() < 2) return ExchangeTimes{};
  if (plan.exchange == Exchange::servers_async) return asynchronous(blocks, plan, setup);
  auto times = plan.zero >= 2 ? sharded(blocks, plan, setup) : replicas(blocks, plan, setup);
  if (times) times->exchange = std::max(times->exchange, times->exposed);
  return times;
}

}  // namespace forerun::scale
