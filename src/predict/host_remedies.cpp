#include "predict/host_remedies.h"

#include <fmt/format.h>

#include <algorithm>

#include "cost/host/cuda_graph.h"
#include "predict/predicted_memory.h"

namespace forerun {
namespace {

constexpr int kMostDoublings = 6;
constexpr int64_t kMostOps = 20'000;  // of an iteration that is derived again: a tenth of a second

HostRemedy remedy(std::string kind, std::string what, Nanoseconds iteration, int64_t samples) {
  const double seconds = static_cast<double>(std::max<int64_t>(iteration.value, 1)) * 1e-9;
  return {std::move(kind), std::move(what), iteration, static_cast<double>(samples) / seconds};
}

bool has_fused_form(OptimizerKind kind) {
  return kind == OptimizerKind::sgd || kind == OptimizerKind::adam || kind == OptimizerKind::adamw ||
         kind == OptimizerKind::adagrad;
}

bool fits(const TrainingRun& run, const Device& device, const CostModels& cost_models) {
  MemoryQuestion question;
  question.intervals = memory_intervals_of(cost_models, run.setup.compile);
  return predicted_memory(run, device, cost_models.workspaces, question).answer.verdict == FitVerdict::fits;
}

}  // namespace

std::optional<HostRemedy> cuda_graph_remedy(std::span<const LaneOp> ops, const LaneSetup& setup, const Prediction& p) {
  if (p.setup.loop != TrainingLoop::plain) return std::nullopt;
  if (std::any_of(ops.begin(), ops.end(), [](const LaneOp& op) { return op.waits; })) return std::nullopt;
  std::vector<LaneOp> launched(ops.begin(), ops.end());
  int64_t kernels = 0;
  for (LaneOp& op : launched) {
    op.host = Nanoseconds(0);
    op.captured = true;
    kernels += op.kernels;
  }
  const LaneSetup once{.gap = setup.gap, .per_iteration = cuda_graph_launch(kernels)};
  return remedy("cuda_graphs", "CUDA graphs", host_gpu_timeline(launched, once).iteration,
                p.input.batch * p.setup.accumulate);
}

std::vector<HostRemedy> rebuilt_remedies(const ModelRequest& request, const RunSource& build, const Device& device,
                                         const CostModels& cost_models, const Prediction& p) {
  std::vector<HostRemedy> found;
  if (p.times.bound != Bottleneck::host || p.ops > kMostOps) return found;
  ModelRequest asked = request;
  asked.setup = p.setup;
  asked.default_optimizer = false;
  if (has_fused_form(p.setup.optimizer.kind) && p.setup.optimizer.impl != OptimizerImpl::fused) {
    ModelRequest fused = asked;
    fused.setup.optimizer.impl = OptimizerImpl::fused;
    if (const Result<SharedTrainingRun> run = build(fused, device)) {
      const Nanoseconds iteration = predicted_times(**run, device, cost_models).iteration;
      if (iteration < p.times.iteration) {
        found.push_back(remedy("fused_optimizer", "fused optimizer", iteration, p.input.batch * p.setup.accumulate));
      }
    }
  }
  if (std::any_of(asked.settings.begin(), asked.settings.end(), [](const auto& s) { return s.first == "batch"; })) {
    std::erase_if(asked.settings, [](const auto& setting) { return setting.first == "batch"; });
  }
  for (int doubling = 1; doubling <= kMostDoublings; ++doubling) {
    const int64_t batch = p.input.batch << doubling;
    asked.batch = batch;
    const Result<SharedTrainingRun> run = build(asked, device);
    if (!run) break;
    const IterationTiming times = predicted_times(**run, device, cost_models);
    if (times.bound == Bottleneck::host) continue;
    if (fits(**run, device, cost_models)) {
      found.push_back(remedy("batch", fmt::format("batch {}", batch), times.iteration, batch * p.setup.accumulate));
    }
    break;
  }
  return found;
}

}  // namespace forerun
