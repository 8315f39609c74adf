#include "api/op_table.h"

#include "derive/work.h"
#include "graph/op_modules.h"

namespace forerun {

Result<std::vector<PredictedOp>> op_table(const PredictRequest& request, const RunSource& build,
                                          const CostModels& cost_models, const WorkControl& control) {
  Work work(control);
  const Result<Device> device = asked_gpu(request.gpu, cost_models);
  if (!device) return device.error();
  const Result<SharedTrainingRun> run = build(request.model, *device);
  if (!run) return run.error();
  if (const Status status = work.check(); !status.ok()) return status.error();
  const Graph& graph = (*run)->graph;
  const std::vector<OpCost> costs = gpu_costs(**run, *device, cost_models);
  const std::vector<NameId> modules = op_modules(graph);
  std::vector<PredictedOp> rows;
  rows.reserve(graph.op_count());
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    const OpWork done = work_of(graph, op);
    rows.push_back({.name = graph.name(op),
                    .phase = std::string(name_of(op.phase)),
                    .module = graph.names()[modules[i]],
                    .gpu = costs[i].gpu,
                    .kernels = costs[i].kernels,
                    .bound = std::string(name_of(costs[i].bound)),
                    .measured = costs[i].measured,
                    .flops = done.flops.value,
                    .bytes = done.bytes()});
  }
  if (const Status status = work.check(); !status.ok()) return status.error();
  return rows;
}

}  // namespace forerun
