#include "lab/calibrate/train_hybrid.h"

#include <chrono>
#include <filesystem>

#include "base/data_dir.h"
#include "cost/hybrid/hybrid_file.h"
#include "lab/training_data/measured_ops.h"
#include "predict/predict.h"
#include "records/data_split.h"

namespace forerun {

Result<std::vector<hybrid::MeasuredOp>> hybrid_ops(const HybridRequest& request, const CostModels& cost_models) {
  const auto part = TrainingPart::beside(request.files, request.without);
  if (!part) return part.error();
  auto ops = load_measured_ops(request.files, *part, cost_models, request.problem);
  if (ops && !request.op_samples) std::erase_if(*ops, [](const hybrid::MeasuredOp& op) { return op.alone; });
  return ops;
}

Result<HybridOutcome> train_hybrid(const HybridRequest& request, const WorkControl& control) {
  const auto begin = std::chrono::steady_clock::now();
  const Result<CostModels> cost_models = load_cost_models({}, Trees::without);
  if (!cost_models) return cost_models.error();
  const Result<std::filesystem::path> folder = data_dir();
  if (!folder) return folder.error();
  auto ops = hybrid_ops(request, *cost_models);
  if (!ops) return ops.error();
  HybridOutcome outcome;
  outcome.file = request.out.empty() ? (*folder / hybrid::kHybridFile).string() : request.out;
  for (const hybrid::MeasuredOp& op : *ops) ++(op.alone ? outcome.samples : outcome.ops);
  auto residual_model = hybrid::train(std::move(*ops), request.growth, control);
  if (!residual_model) return residual_model.error();
  residual_model->gpu = cost_models->devices.find(kDefaultGpu)->name;
  if (const Status saved = hybrid::save_residual_model(*residual_model, outcome.file); !saved.ok())
    return saved.error();
  for (const auto& model : residual_model->models) {
    if (!model) continue;
    const hybrid::KernelForests& forests = model->forests.get();
    outcome.trees +=
        static_cast<int64_t>(forests.time.tree_count() + forests.kernels.tree_count() + forests.span.tree_count());
  }
  std::error_code ignored;
  outcome.bytes = static_cast<int64_t>(std::filesystem::file_size(outcome.file, ignored));
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

}  // namespace forerun
