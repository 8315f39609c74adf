#include "testbed/replica_schedule.h"

#include <algorithm>
#include <cmath>

#include "timeline/graph_edit.h"
#include "timeline/model_tasks.h"
#include "whatif/exchange_costs.h"
#include "whatif/gradient_exchange.h"

namespace forerun::scale {
namespace {

constexpr Bytes kSlice(4'096'000);  // of messages that are cut, ByteScheduler's
constexpr int64_t kSlicesInFlight = 4;

Topology topology_of(const GpuCluster& cluster, const Efficiency& efficiency, int64_t gpus) {
  Topology topology;
  topology.ranks_per_node = std::min(gpus, cluster.node);
  topology.nodes = std::max<int64_t>(gpus / topology.ranks_per_node, 1);
  topology.within = cluster.within;
  topology.within.bandwidth *= efficiency.within.share;
  topology.within.latency = nanoseconds_from_us(efficiency.within.step_us);
  topology.between = cluster.between;
  topology.between.bandwidth *= efficiency.between.share;
  return topology;
}

whatif::GradientExchange gradient_exchange(const Plan& plan, const Topology& topology, const Efficiency& efficiency) {
  const bool cut = plan.schedule == Schedule::prioritised;
  whatif::GradientExchange exchange;
  if (plan.exchange == Exchange::all_reduce) {
    const double call = topology.nodes > 1 ? efficiency.between.call_us : efficiency.within.call_us;
    exchange = whatif::by_all_reduce(
        {.topology = topology, .per_message = nanoseconds_from_us(call), .in_flight = cut ? kSlicesInFlight : 1});
  } else {
    exchange = whatif::by_servers(
        {.topology = topology, .servers = std::min(plan.servers, topology.nodes), .colocated = true});
    exchange.awaited = plan.exchange == Exchange::servers;
  }
  switch (plan.schedule) {
    case Schedule::buckets: exchange.grouping = whatif::Grouping::buckets; break;
    case Schedule::whole: exchange.grouping = whatif::Grouping::whole; break;
    case Schedule::merged: exchange.grouping = whatif::Grouping::merged; break;
    case Schedule::each:
    case Schedule::prioritised: exchange.grouping = whatif::Grouping::each; break;
  }
  if (!plan.overlap) exchange.grouping = whatif::Grouping::whole;
  if (cut) exchange.slice = kSlice;
  exchange.prioritised = cut;
  return exchange;
}

std::vector<OpCost> scaled_to(std::span<const OpCost> costs, Nanoseconds single) {
  double busy = 0;
  for (const OpCost& cost : costs) busy += static_cast<double>((cost.gpu - cost.overlapped).value);
  const double factor = busy > 0 ? static_cast<double>(single.value) / busy : 1;
  const auto times = [&](Nanoseconds time) {
    return Nanoseconds(std::llround(factor * static_cast<double>(time.value)));
  };
  std::vector<OpCost> scaled(costs.begin(), costs.end());
  for (OpCost& cost : scaled) {
    cost.gpu = times(cost.gpu);
    cost.overlapped = times(cost.overlapped);
  }
  return scaled;
}

Nanoseconds busiest_link(const TaskGraph& tasks) {
  std::vector<Nanoseconds> busy(tasks.lanes().size());
  for (uint32_t i = 0; i < tasks.size(); ++i) busy[tasks.lane(TaskId(i)).value] += tasks.duration(TaskId(i));
  Nanoseconds most;
  for (size_t lane = 0; lane < busy.size(); ++lane) {
    if (tasks.lanes()[lane].kind == LaneKind::network_link) most = std::max(most, busy[lane]);
  }
  return most;
}

}  // namespace

Result<ReplicaTimes> replica_times(const Graph& graph, std::span<const OpCost> costs, Nanoseconds single,
                                   const Plan& plan, const GpuCluster& cluster, const Efficiency& efficiency) {
  const auto tasks = model_tasks(graph, scaled_to(costs, single), Nanoseconds());
  if (!tasks) return tasks.error();
  const auto alone = steady_iteration(tasks->tasks, tasks->beginning);
  if (!alone) return alone.error();
  whatif::BackwardPass pass;
  for (const ModelGradient& gradient : tasks->gradients) {
    pass.gradients.push_back({gradient.ready, gradient.used, gradient.bytes});
  }
  pass.updates = select(tasks->tasks, in_phase(StepPhase::update));
  GraphEdit edit(tasks->tasks);
  std::vector<CarriedDependency> carried;
  const Topology topology = topology_of(cluster, efficiency, plan.data);
  whatif::add_exchange(edit, {pass}, gradient_exchange(plan, topology, efficiency), carried);
  std::vector<TaskId> now;
  const auto changed = edit.build(&now);
  if (!changed) return changed.error();
  const auto time = steady_iteration(*changed, now[tasks->beginning.value], carried);
  if (!time) return time.error();
  return ReplicaTimes{*alone, std::max(*alone, *time), busiest_link(*changed)};
}

}  // namespace forerun::scale
