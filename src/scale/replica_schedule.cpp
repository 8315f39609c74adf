#include "scale/replica_schedule.h"

#include "scale/gradient_exchange.h"
#include "timeline/sharded_exchange.h"

namespace forerun::scale {

Result<ReplicaTimes> replica_times(const ModelTasks& model, const Plan& plan, const GpuCluster& cluster,
                                   const Efficiency& efficiency, double gathered) {
  const BackwardPass pass{model.gradients, select(model.tasks, both(in_phase(StepPhase::update), is_on_gpu()))};
  const Network network(cluster, efficiency);
  const Group group{plan.replicas(), plan.tensor};
  const ShardedTraining sharded{plan.zero, network.topology_of(group), network.call_of(group), gathered};
  const auto sent = exchanged_tasks(model.tasks, {pass}, replica_exchange(plan, network, group),
                                    [&](GraphEdit& edit, const std::vector<BackwardPass>& passes,
                                        ExchangeCounts& counts, std::vector<CarriedDependency>& carried) {
                                      if (plan.zero > 0) share_out(edit, passes, sharded, counts, carried);
                                    });
  if (!sent) return sent.error();
  const auto time = steady_iteration(sent->tasks, sent->now[model.beginning.value], sent->carried);
  if (!time) return time.error();
  return ReplicaTimes{*time, sent->exchange};
}

}  // namespace forerun::scale
