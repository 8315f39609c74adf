#include "lab/eval/iterations_alone.h"

#include <nlohmann/json.hpp>

#include "base/data_dir.h"
#include "base/output_file.h"
#include "base/provenance.h"
#include "lab/calibrate/train_hybrid.h"
#include "lab/eval/kept_results.h"
#include "lab/learn/training_session.h"
#include "predict/predict.h"
#include "records/data_files.h"

namespace forerun {
namespace {

Result<std::string> kept_row_file() {
  const auto data = data_dir();
  if (!data) return data.error();
  return (*data / "evaluations" / "iterations-alone.jsonl").string();
}

nlohmann::ordered_json kept_errors(const std::vector<learn::Evaluation>& evaluations) {
  auto list = nlohmann::ordered_json::array();
  for (const learn::Evaluation& evaluation : evaluations) list.push_back(learn::to_json(evaluation));
  return list;
}

}  // namespace

Result<CostModels> cost_models_of_iterations(const std::function<void(const DataProblem&)>& problem,
                                             const WorkControl& control) {
  const auto folder = data_dir();
  if (!folder) return folder.error();
  const auto files = record_files({(*folder / "h200").string()});
  if (!files) return files.error();
  auto cost_models = load_cost_models({}, Trees::without);
  if (!cost_models) return cost_models.error();
  HybridRequest request{.files = *files, .op_samples = false, .growth = {}, .problem = problem};
  auto ops = hybrid_ops(request, *cost_models);
  if (!ops) return ops.error();
  auto trees = hybrid::train(std::move(*ops), request.growth, control);
  if (!trees) return trees.error();
  const auto gpu = cost_models->devices.find(kDefaultGpu);
  if (!gpu) return gpu.error();
  trees->gpu = gpu->name;
  cost_models->residual_model = std::move(*trees);
  return cost_models;
}

Status keep_iterations_alone(const SuiteRow& row, const std::string& data) {
  const auto file = kept_row_file();
  if (!file) return file.error();
  const nlohmann::ordered_json line = {{"label", row.label},
                                       {"predictor", row.predictor},
                                       {"learned_from", row.learned_from},
                                       {"date", today_utc()},
                                       {"data", data},
                                       {"weights", row.weights},
                                       {"test", kept_errors(row.evaluations)},
                                       {"ood", kept_errors(row.ood)},
                                       {"randwire", kept_errors(row.randwire)}};
  return write_whole_file(*file, line.dump() + "\n");
}

Result<std::vector<SuiteRow>> kept_iterations_alone(const std::string& data) {
  const auto file = kept_row_file();
  if (!file) return file.error();
  auto rows = read_kept_results(*file, data);
  if (!rows) return rows.error();
  const auto now = cost_models_fingerprint();
  if (!now) return now.error();
  for (SuiteRow& row : *rows) row.stale = row.stale || row.weights != *now;
  return rows;
}

}  // namespace forerun
