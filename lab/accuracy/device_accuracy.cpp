#include "lab/accuracy/device_accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "lab/accuracy/eval_schema.h"
#include "report/table.h"

namespace forerun {
namespace {

std::string told(const std::optional<double>& error) { return error ? percent(*error, 1) : "-"; }

std::string ops_table(const DeviceAccuracy& accuracy) {
  if (accuracy.fitted.empty()) return "";
  Table table({"GPU", "ops", "number", "Forerun", "NeuSight", "Habitat", "roofline", "measured / predicted"});
  table.align_left(1);
  for (const hybrid::CarriedError& row : accuracy.fitted) {
    table.add({row.gpu, row.kind, grouped(row.ops), percent(row.mre, 1), told(row.neusight), told(row.habitat),
               percent(row.roofline, 1), fmt::format("{:.2f}", row.ratio)});
  }
  return fmt::format("Single ops of 50 us and more, each GPU left out of all fits: mean errors\n{}\n", table.text());
}

std::string runs_table(const DeviceAccuracy& accuracy) {
  if (accuracy.runs.empty()) return "";
  Table table({"GPU", "model", "what", "batch", "length", "measured ms", "predicted ms", "yardstick", "error",
               "roofline", "range"});
  table.align_left(1);
  table.align_left(2);
  for (const OtherGpuRun& run : accuracy.runs) {
    table.add(
        {run.gpu, run.model, run.what, grouped(run.batch), grouped(run.length), fmt::format("{:.1f}", run.measured_ms),
         fmt::format("{:.1f}", run.predicted_ms), run.yardstick == 1 ? "-" : fmt::format("{:.2f}", run.yardstick),
         fmt::format("{:+.0f} %", 100 * (1 / run.ratio() - 1)),
         fmt::format("{:+.0f} %", 100 * (run.roofline_ms / run.measured_ms - 1)), run.is_held() ? "holds" : "missed"});
  }
  return fmt::format("Whole models, each GPU left out of all fits and ranges\n{}\n", table.text());
}

std::vector<std::string> error_cells(const OtherGpuError& row) {
  return {grouped(row.runs),
          percent(row.mre, 1),
          fmt::format("{:+.1f} %", 100 * row.bias),
          percent(row.held, 0),
          told(row.neusight),
          told(row.habitat),
          percent(row.roofline, 1),
          row.published ? percent(*row.published, 1) : "-"};
}

std::string gpus_table(const DeviceAccuracy& accuracy) {
  if (accuracy.runs.empty()) return "";
  Table table(
      {"GPU", "runs of", "number", "Forerun", "bias", "range holds", "NeuSight", "Habitat", "roofline", "its paper"});
  table.align_left(1);
  const auto add = [&](std::string gpu, std::string source, const OtherGpuError& row) {
    if (row.runs == 0) return;
    std::vector<std::string> cells = {std::move(gpu), std::move(source)};
    const auto more = error_cells(row);
    cells.insert(cells.end(), more.begin(), more.end());
    table.add(cells);
  };
  for (const OtherGpuError& row : errors_by_gpu(accuracy)) add(row.gpu, row.source, row);
  const GpusSummary all = summary_of(accuracy);
  add("all", kNeuSight, all.runs);
  add("all of the measured architecture", kLambda, all.kin);
  add("all others", kLambda, all.others);
  for (const auto& [source, row] : all.judged_alone) add("all", source, row);
  std::string ranges;
  for (const GpuDistance distance : kOtherGpus) {
    const RatioInterval& range = accuracy.ranges.other(distance);
    ranges += fmt::format("{}{} {} to {}", ranges.empty() ? "" : "; ", name_of(distance), range.low, range.high);
  }
  return fmt::format(
      "The same by GPU: mean errors. NeuSight and Habitat: as re-implemented and kept, on the same runs\n{}\n"
      "Ranges of an answer, measured over predicted, by distance: {}\n",
      table.text(), ranges);
}

std::string kinds_table(const DeviceAccuracy& accuracy) {
  Table table({"ops", "mean over GPUs"});
  for (const auto& [kind, error] : summary_of(accuracy).ops) table.add({kind, percent(error, 1)});
  return accuracy.fitted.empty() ? "" : table.text() + "\n";
}

// Sums of runs, to be divided by their number.
struct RunSums {
  OtherGpuError row;
  double neusight = 0, habitat = 0;
  int64_t with_neusight = 0, with_habitat = 0;

  void add(const OtherGpuRun& run) {
    ++row.runs;
    row.mre += run.error();
    row.bias += 1 / run.ratio() - 1;
    row.held += run.is_held() ? 1 : 0;
    row.roofline += run.roofline_error();
    if (run.neusight_ms) {
      neusight += std::abs(*run.neusight_ms / run.measured_ms - 1);
      ++with_neusight;
    }
    if (run.habitat_error) {
      habitat += *run.habitat_error;
      ++with_habitat;
    }
  }
  [[nodiscard]] OtherGpuError mean() const {
    OtherGpuError result = row;
    const auto runs = static_cast<double>(std::max<int64_t>(row.runs, 1));
    result.mre /= runs;
    result.bias /= runs;
    result.held /= runs;
    result.roofline /= runs;
    if (with_neusight > 0) result.neusight = neusight / static_cast<double>(with_neusight);
    if (with_habitat > 0) result.habitat = habitat / static_cast<double>(with_habitat);
    return result;
  }
};

}  // namespace

std::vector<OtherGpuError> errors_by_gpu(const DeviceAccuracy& accuracy) {
  std::map<std::pair<std::string, std::string>, RunSums> rows;
  for (const OtherGpuRun& run : accuracy.runs) rows[{run.source, run.gpu}].add(run);
  std::vector<OtherGpuError> list;
  for (const auto& [key, sums] : rows) {
    OtherGpuError row = sums.mean();
    std::tie(row.source, row.gpu) = key;
    const auto published = accuracy.neusight.find(row.gpu);
    if (row.source == kNeuSight && published != accuracy.neusight.end()) row.published = published->second;
    list.push_back(row);
  }
  return list;
}

GpusSummary summary_of(const DeviceAccuracy& accuracy) {
  GpusSummary summary;
  std::map<std::string, std::pair<double, double>> kinds;
  for (const hybrid::CarriedError& row : accuracy.fitted) {
    kinds[row.kind].first += row.mre;
    kinds[row.kind].second += 1;
  }
  for (const auto& [kind, sum] : kinds) summary.ops[kind] = sum.first / sum.second;
  RunSums runs, kin, others;
  std::map<std::string, RunSums> judged_alone;
  for (const OtherGpuRun& run : accuracy.runs) {
    RunSums& sums = run.judged_alone          ? judged_alone[run.source]
                    : run.source == kNeuSight ? runs
                    : run.kin                 ? kin
                                              : others;
    sums.add(run);
  }
  for (const auto& [source, sums] : judged_alone) summary.judged_alone[source] = sums.mean();
  summary.runs = runs.mean();
  summary.kin = kin.mean();
  summary.others = others.mean();
  return summary;
}

std::string to_text(const DeviceAccuracy& accuracy) {
  std::string text;
  for (const std::string& problem : accuracy.problems) text += fmt::format("left out: {}\n", problem);
  return text + ops_table(accuracy) + kinds_table(accuracy) + runs_table(accuracy) + gpus_table(accuracy);
}

std::string to_json(const DeviceAccuracy& accuracy) {
  using Json = nlohmann::ordered_json;
  const auto digits = [](double value) { return std::round(value * 1e5) / 1e5; };
  Json ops = Json::array();
  for (const hybrid::CarriedError& row : accuracy.fitted) {
    Json entry = {{"gpu", row.gpu},
                  {"ops", row.kind},
                  {"number", row.ops},
                  {"mre", digits(row.mre)},
                  {"roofline_mre", digits(row.roofline)},
                  {"ratio", digits(row.ratio)}};
    if (row.neusight) entry["neusight_mre"] = digits(*row.neusight);
    if (row.habitat) entry["habitat_mre"] = digits(*row.habitat);
    ops.push_back(std::move(entry));
  }
  Json runs = Json::array();
  for (const OtherGpuRun& run : accuracy.runs) {
    runs.push_back({{"source", run.source},
                    {"gpu", run.gpu},
                    {"model", run.model},
                    {"what", run.what},
                    {"batch", run.batch},
                    {"length", run.length},
                    {"measured_ms", digits(run.measured_ms)},
                    {"predicted_ms", digits(run.predicted_ms)},
                    {"roofline_ms", digits(run.roofline_ms)},
                    {"judged_alone", run.judged_alone},
                    {"yardstick", digits(run.yardstick)},
                    {"distance", name_of(run.distance)},
                    {"low", run.range.low},
                    {"high", run.range.high}});
  }
  Json gpus = Json::array();
  for (const OtherGpuError& row : errors_by_gpu(accuracy)) {
    Json entry = {{"gpu", row.gpu},
                  {"source", row.source},
                  {"runs", row.runs},
                  {"mre", digits(row.mre)},
                  {"bias", digits(row.bias)},
                  {"held", digits(row.held)},
                  {"roofline_mre", digits(row.roofline)}};
    if (row.neusight) entry["neusight_mre"] = digits(*row.neusight);
    if (row.habitat) entry["habitat_mre"] = digits(*row.habitat);
    if (row.published) entry["published_mre"] = *row.published;
    gpus.push_back(std::move(entry));
  }
  Json ranges = Json::object();
  for (const GpuDistance distance : kOtherGpus) {
    const RatioInterval& range = accuracy.ranges.other(distance);
    ranges[std::string(name_of(distance))] = {{"low", range.low}, {"high", range.high}};
  }
  return Json{{"schema", eval_schema("gpus")},
              {"suite", "gpus"},
              {"date", accuracy.date},
              {"weights", accuracy.fingerprint},
              {"ops", ops},
              {"runs", runs},
              {"gpus", gpus},
              {"ranges", ranges},
              {"problems", accuracy.problems}}
      .dump();
}

}  // namespace forerun
