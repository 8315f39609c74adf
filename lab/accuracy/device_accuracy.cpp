#include "lab/accuracy/device_accuracy.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "lab/accuracy/eval_schema.h"
#include "report/table.h"

namespace forerun {
namespace {

double other_gpu_error(const OtherGpuRun& run) { return std::abs(run.predicted_ms / run.measured_ms - 1); }

std::string ops_table(const DeviceAccuracy& accuracy) {
  Table table({"GPU", "ops", "number", "MRE scaled", "MRE fitted", "measured / predicted"});
  table.align_left(1);
  double plain = 0;
  double fitted = 0;
  for (size_t i = 0; i < accuracy.fitted.size() && i < accuracy.plain.size(); ++i) {
    const hybrid::CarriedError& row = accuracy.fitted[i];
    plain += accuracy.plain[i].mre;
    fitted += row.mre;
    table.add({row.gpu, row.kind, grouped(row.ops), percent(accuracy.plain[i].mre, 0), percent(row.mre, 0),
               fmt::format("{:.2f}", row.ratio)});
  }
  if (accuracy.fitted.empty()) return "";
  const auto rows = static_cast<double>(accuracy.fitted.size());
  return fmt::format(
      "Single ops, each GPU left out of the fit (scaled: by the analytic model alone); mean of all rows {} -> {}\n{}\n",
      percent(plain / rows, 0), percent(fitted / rows, 0), table.text());
}

std::string runs_table(const DeviceAccuracy& accuracy) {
  if (accuracy.runs.empty()) return "";
  Table table({"GPU", "model", "what", "batch", "length", "measured ms", "predicted ms", "error"});
  table.align_left(1);
  table.align_left(2);
  double sum = 0;
  for (const OtherGpuRun& run : accuracy.runs) {
    sum += other_gpu_error(run);
    table.add({run.gpu, run.model, run.what, grouped(run.batch), grouped(run.length),
               fmt::format("{:.1f}", run.measured_ms), fmt::format("{:.1f}", run.predicted_ms),
               fmt::format("{:+.0f} %", 100 * (run.predicted_ms / run.measured_ms - 1))});
  }
  return fmt::format(
      "Whole models, each GPU left out of the fit: MRE {:.1f} %; eight of ten measured times are {} to "
      "{} of the predicted\n{}\n",
      100 * sum / static_cast<double>(accuracy.runs.size()), accuracy.range.low, accuracy.range.high, table.text());
}

std::string gpus_table(const DeviceAccuracy& accuracy) {
  if (accuracy.runs.empty()) return "";
  Table table({"GPU", "runs of", "number", "MRE", "bias", "NeuSight's own"});
  table.align_left(1);
  for (const OtherGpuError& row : errors_by_gpu(accuracy)) {
    table.add({row.gpu, row.source, grouped(row.runs), percent(row.mre, 1), fmt::format("{:+.1f} %", 100 * row.bias),
               row.published ? percent(*row.published, 1) : "-"});
  }
  return fmt::format("The same by GPU (beside: what NeuSight's authors print for their predictor there)\n{}\n",
                     table.text());
}

}  // namespace

std::vector<OtherGpuError> errors_by_gpu(const DeviceAccuracy& accuracy) {
  std::map<std::pair<std::string, std::string>, OtherGpuError> rows;
  for (const OtherGpuRun& run : accuracy.runs) {
    OtherGpuError& row = rows[{run.source, run.gpu}];
    ++row.runs;
    row.mre += other_gpu_error(run);
    row.bias += run.predicted_ms / run.measured_ms - 1;
  }
  std::vector<OtherGpuError> list;
  for (auto& [key, row] : rows) {
    std::tie(row.source, row.gpu) = key;
    row.mre /= static_cast<double>(row.runs);
    row.bias /= static_cast<double>(row.runs);
    const auto published = accuracy.neusight.find(row.gpu);
    if (row.source == kNeuSight && published != accuracy.neusight.end()) row.published = published->second;
    list.push_back(row);
  }
  return list;
}

std::string to_text(const DeviceAccuracy& accuracy) {
  std::string text;
  for (const std::string& problem : accuracy.problems) text += fmt::format("left out: {}\n", problem);
  return text + ops_table(accuracy) + runs_table(accuracy) + gpus_table(accuracy);
}

std::string to_json(const DeviceAccuracy& accuracy) {
  using Json = nlohmann::ordered_json;
  const auto errors = [](const std::vector<hybrid::CarriedError>& rows) {
    Json list = Json::array();
    for (const hybrid::CarriedError& row : rows) {
      list.push_back(
          {{"gpu", row.gpu}, {"ops", row.kind}, {"number", row.ops}, {"mre", row.mre}, {"ratio", row.ratio}});
    }
    return list;
  };
  Json runs = Json::array();
  for (const OtherGpuRun& run : accuracy.runs) {
    runs.push_back({{"source", run.source},
                    {"gpu", run.gpu},
                    {"model", run.model},
                    {"what", run.what},
                    {"batch", run.batch},
                    {"length", run.length},
                    {"measured_ms", run.measured_ms},
                    {"predicted_ms", run.predicted_ms}});
  }
  Json gpus = Json::array();
  for (const OtherGpuError& row : errors_by_gpu(accuracy)) {
    Json entry = {{"gpu", row.gpu}, {"source", row.source}, {"runs", row.runs}, {"mre", row.mre}, {"bias", row.bias}};
    if (row.published) entry["published_mre"] = *row.published;
    gpus.push_back(std::move(entry));
  }
  return Json{{"schema", eval_schema("devices")},
              {"suite", "devices"},
              {"scaled", errors(accuracy.plain)},
              {"fitted", errors(accuracy.fitted)},
              {"runs", runs},
              {"gpus", gpus},
              {"range", {{"low", accuracy.range.low}, {"high", accuracy.range.high}}},
              {"problems", accuracy.problems}}
      .dump();
}

}  // namespace forerun
