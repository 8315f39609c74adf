#include "lab/calibrate/left_out_suite.h"

#include <chrono>
#include <unordered_map>

#include "lab/learn/training_session.h"
#include "lab/training_data/learning_data.h"

namespace forerun {

Result<SuiteResult> evaluate_left_out(const CrossValidation& request, const WorkControl& control) {
  const auto begun = std::chrono::steady_clock::now();
  const auto runs = cross_validate(request, control);
  if (!runs) return runs.error();
  auto result = evaluate_left_out_runs(request, *runs);
  if (!result) return result.error();
  result->rows[0].seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return result;
}

Result<SuiteResult> evaluate_left_out_runs(const CrossValidation& request, const std::vector<LeftOutRun>& runs) {
  const auto data = load_record_data(request.files, {.split = "", .unnamed = learn::Split::ood}, request.problem);
  if (!data) return data.error();
  std::unordered_map<std::string, learn::Prediction> by_id;
  for (const LeftOutRun& run : runs) {
    by_id.emplace(run.id, learn::Prediction{.iteration_ms = run.iteration_ms, .gpu_busy_ms = run.gpu_busy_ms});
  }
  const learn::Selection examples = learn::select(*data, learn::Split::train);
  std::vector<learn::Prediction> predictions;
  for (const uint32_t i : examples) predictions.push_back(by_id[data->examples()[i].id]);
  SuiteRow row{.predictor = "forerun",
               .label = "forerun",
               .trained_on = "the other families",
               .learned_from = "iterations, op samples",
               .evaluations = learn::evaluate_all(*data, examples, predictions)};
  SuiteResult result{.suite = "h200",
                     .split = "families left out in turn",
                     .data = data->source,
                     .examples = static_cast<int64_t>(examples.size())};
  result.rows.push_back(std::move(row));
  return result;
}

}  // namespace forerun
