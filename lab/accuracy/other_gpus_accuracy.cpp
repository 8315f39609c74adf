#include "lab/accuracy/other_gpus_accuracy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/data_dir.h"
#include "base/json_file.h"
#include "lab/accuracy/eval_schema.h"
#include "report/table.h"

namespace forerun {
namespace {

using learn::PredictedPair;
using Json = nlohmann::ordered_json;

std::string percent_or_none(std::optional<double> share) { return share ? percent(*share, 0) : "-"; }

// The runs that a predictor answers; Habitat answers once for every origin.
std::vector<PredictedPair> pairs_of(const OtherGpusAccuracy& accuracy, std::string_view predictor,
                                    const std::string& gpu = "") {
  std::vector<PredictedPair> pairs;
  for (const OtherGpuModel& model : accuracy.models) {
    if (!gpu.empty() && model.gpu != gpu) continue;
    if (predictor == "forerun" && model.forerun_ms) pairs.push_back({model.measured_ms, *model.forerun_ms});
    if (predictor == "neusight" && model.neusight_ms) pairs.push_back({model.measured_ms, *model.neusight_ms});
    if (predictor != "habitat") continue;
    for (const auto& [origin, ms] : model.habitat_ms) pairs.push_back({model.measured_ms, ms});
  }
  return pairs;
}

constexpr const char* kSideBySide[] = {"forerun", "habitat", "neusight"};

// Errors on the runs that all three answer, Habitat's of a run being the mean over its origins.
struct CommonRuns {
  int64_t runs = 0;
  double forerun = 0, habitat = 0, neusight = 0;
};

CommonRuns common_runs(const OtherGpusAccuracy& accuracy) {
  CommonRuns common;
  for (const OtherGpuModel& model : accuracy.models) {
    if (!model.forerun_ms || !model.neusight_ms || model.habitat_ms.empty()) continue;
    const auto off = [&](double ms) { return std::abs(ms / model.measured_ms - 1); };
    ++common.runs;
    common.forerun += off(*model.forerun_ms);
    common.neusight += off(*model.neusight_ms);
    for (const auto& [origin, ms] : model.habitat_ms) {
      common.habitat += off(ms) / static_cast<double>(model.habitat_ms.size());
    }
  }
  const auto runs = static_cast<double>(std::max<int64_t>(1, common.runs));
  common.forerun /= runs;
  common.habitat /= runs;
  common.neusight /= runs;
  return common;
}

std::string ops_table(const std::vector<OtherGpuOps>& rows, const std::string& heading, bool forerun) {
  if (rows.empty()) return "";
  std::vector<std::string> columns = {"GPU", "ops", "number", "forerun", "habitat", "neusight"};
  if (!forerun) columns.erase(columns.begin() + 3);
  Table table(columns);
  table.align_left(1);
  for (const OtherGpuOps& row : rows) {
    std::vector<std::string> cells = {row.gpu,
                                      row.kind,
                                      grouped(row.ops),
                                      percent_or_none(row.forerun),
                                      percent_or_none(row.habitat),
                                      percent_or_none(row.neusight)};
    if (!forerun) cells.erase(cells.begin() + 3);
    table.add(std::move(cells));
  }
  // The mean of rows that all columns have.
  double sums[3] = {};
  double judged = 0;
  for (const OtherGpuOps& row : rows) {
    if ((forerun && !row.forerun) || !row.habitat || !row.neusight) continue;
    ++judged;
    sums[0] += row.forerun.value_or(0);
    sums[1] += *row.habitat;
    sums[2] += *row.neusight;
  }
  std::string means = "no row has all of them";
  if (judged > 0) {
    means = fmt::format("mean of the {:.0f} rows that have all: {}habitat {}, neusight {}", judged,
                        forerun ? "forerun " + percent(sums[0] / judged, 0) + ", " : "", percent(sums[1] / judged, 0),
                        percent(sums[2] / judged, 0));
  }
  return fmt::format("{}; {}\n{}\n", heading, means, table.text());
}

std::string pairs_table(const OtherGpusAccuracy& accuracy) {
  if (accuracy.pairs.empty()) return "";
  std::set<std::string> kinds;
  for (const HabitatPair& pair : accuracy.pairs) {
    for (const auto& [kind, errors] : pair.by_kind) kinds.insert(kind);
  }
  std::vector<std::string> heading = {"from", "to", "number"};
  heading.insert(heading.end(), kinds.begin(), kinds.end());
  heading.emplace_back("all");
  Table table(heading);
  table.align_left(1);
  double sum = 0;
  for (const HabitatPair& pair : accuracy.pairs) {
    std::vector<std::string> cells = {pair.origin, pair.destination, grouped(pair.all.count)};
    for (const std::string& kind : kinds) {
      const auto found = pair.by_kind.find(kind);
      cells.push_back(found == pair.by_kind.end() ? "-" : percent(found->second.mre, 0));
    }
    cells.push_back(percent(pair.all.mre, 0));
    sum += pair.all.mre;
    table.add(std::move(cells));
  }
  return fmt::format(
      "Habitat as its paper judges it: between GPUs that its MLPs know, ops that they do not; mean of the pairs {} "
      "(its "
      "paper, whole iterations: {}; ETS's authors on unseen models: {})\n{}\n",
      percent(sum / static_cast<double>(accuracy.pairs.size())), percent(accuracy.habitat_published),
      percent(accuracy.habitat_by_ets), table.text());
}

std::string models_table(const OtherGpusAccuracy& accuracy) {
  if (accuracy.models.empty()) return "";
  Table table({"GPU", "model", "what", "batch", "length", "measured ms", "forerun", "habitat", "neusight"});
  table.align_left(1);
  table.align_left(2);
  for (const OtherGpuModel& model : accuracy.models) {
    const auto off = [&](std::optional<double> ms) {
      return ms ? fmt::format("{:+.0f} %", 100 * (*ms / model.measured_ms - 1)) : std::string("-");
    };
    std::string habitat = "-";
    if (!model.habitat_ms.empty()) {
      double least = model.habitat_ms.begin()->second;
      double most = least;
      for (const auto& [origin, ms] : model.habitat_ms) {
        least = std::min(least, ms);
        most = std::max(most, ms);
      }
      habitat = least == most ? off(least) : off(least) + " to " + off(most);
    }
    table.add({model.gpu, model.model, model.what, grouped(model.batch), grouped(model.length),
               fmt::format("{:.1f}", model.measured_ms), off(model.forerun_ms), habitat, off(model.neusight_ms)});
  }
  std::string text = "Whole models, each GPU left out by all three (habitat: from each GPU that ran the same model)\n";
  for (const char* name : kSideBySide) {
    const auto pairs = pairs_of(accuracy, name);
    const learn::ErrorSummary errors = learn::summarize(pairs);
    text += fmt::format("  {:<9} MRE {}, median {}, bias {}, over {} cases\n", name, percent(errors.mre),
                        percent(errors.median), signed_percent(errors.bias), errors.count);
  }
  std::set<std::string> gpus;
  for (const OtherGpuModel& model : accuracy.models) gpus.insert(model.gpu);
  for (const std::string& gpu : gpus) {
    std::vector<std::string> parts;
    for (const char* name : kSideBySide) {
      const learn::ErrorSummary errors = learn::summarize(pairs_of(accuracy, name, gpu));
      if (errors.count > 0) parts.push_back(fmt::format("{} {} ({})", name, percent(errors.mre), errors.count));
    }
    text += fmt::format("  on {}: {}\n", gpu, fmt::join(parts, ", "));
  }
  if (const CommonRuns common = common_runs(accuracy); common.runs > 0) {
    text += fmt::format("  on the {} runs that all answer: forerun {}, habitat {}, neusight {}\n", common.runs,
                        percent(common.forerun), percent(common.habitat), percent(common.neusight));
  }
  if (!accuracy.neusight_published.empty()) {
    std::vector<std::string> shares;
    for (const double share : accuracy.neusight_published) shares.push_back(percent(share));
    text += fmt::format("  NeuSight's authors, on their GPUs that were left out: {}\n", fmt::join(shares, " and "));
  }
  return text + table.text() + "\n";
}

Json ops_json(const std::vector<OtherGpuOps>& rows) {
  Json list = Json::array();
  for (const OtherGpuOps& row : rows) {
    Json entry = {{"gpu", row.gpu}, {"ops", row.kind}, {"number", row.ops}};
    if (row.forerun) entry["forerun_mre"] = *row.forerun;
    if (row.habitat) entry["habitat_mre"] = *row.habitat;
    if (row.habitat) entry["habitat_cases"] = row.habitat_cases;
    if (row.neusight) entry["neusight_mre"] = *row.neusight;
    list.push_back(std::move(entry));
  }
  return list;
}

Json pairs_json(const OtherGpusAccuracy& accuracy) {
  Json list = Json::array();
  for (const HabitatPair& pair : accuracy.pairs) {
    Json kinds = Json::object();
    for (const auto& [kind, errors] : pair.by_kind) kinds[kind] = {{"number", errors.count}, {"mre", errors.mre}};
    list.push_back({{"origin", pair.origin},
                    {"destination", pair.destination},
                    {"number", pair.all.count},
                    {"mre", pair.all.mre},
                    {"by_kind", kinds}});
  }
  return list;
}

Json models_json(const OtherGpusAccuracy& accuracy) {
  Json list = Json::array();
  for (const OtherGpuModel& model : accuracy.models) {
    Json entry = {{"gpu", model.gpu},     {"model", model.model},   {"what", model.what},
                  {"batch", model.batch}, {"length", model.length}, {"measured_ms", model.measured_ms}};
    if (model.forerun_ms) entry["forerun_ms"] = *model.forerun_ms;
    if (!model.habitat_ms.empty()) entry["habitat_ms"] = model.habitat_ms;
    if (model.neusight_ms) entry["neusight_ms"] = *model.neusight_ms;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

std::string to_text(const OtherGpusAccuracy& accuracy) {
  std::string text = accuracy.data.empty()
                         ? ""
                         : fmt::format("{}\n  judged {} on {}\n\n", accuracy.data, accuracy.date, accuracy.machine);
  text += ops_table(accuracy.ops, "Single ops of 0.2 ms and more, each GPU left out by all three", /*forerun=*/true) +
          ops_table(accuracy.traced_ops, "Ops of whole models, each GPU left out by both", /*forerun=*/false) +
          pairs_table(accuracy) + models_table(accuracy);
  if (!accuracy.not_judged.empty()) text += fmt::format("Not judged: {}\n", accuracy.not_judged.size());
  for (const std::string& what : accuracy.not_judged) text += fmt::format("  {}\n", what);
  return text;
}

std::string to_json(const OtherGpusAccuracy& accuracy) {
  Json predictors = Json::array();
  for (const char* name : kSideBySide) {
    const auto pairs = pairs_of(accuracy, name);
    const learn::ErrorSummary errors = learn::summarize(pairs);
    const auto weights = accuracy.weights.find(name);
    predictors.push_back({{"label", name},
                          {"weights", weights == accuracy.weights.end() ? "" : weights->second},
                          {"evaluations",
                           {{{"quantity", learn::name_of(learn::Target::iteration_ms)},
                             {"all", {{"count", errors.count}, {"mre", errors.mre}, {"bias", errors.bias}}},
                             {"ratios", learn::ratio_quantiles(pairs)}}}}});
  }
  return Json{{"schema", eval_schema("other-gpus")},
              {"suite", "other-gpus"},
              {"data", accuracy.data},
              {"date", accuracy.date},
              {"machine", accuracy.machine},
              {"predictors", predictors},
              {"ops", ops_json(accuracy.ops)},
              {"traced_ops", ops_json(accuracy.traced_ops)},
              {"pairs", pairs_json(accuracy)},
              {"models", models_json(accuracy)},
              {"not_judged", accuracy.not_judged},
              {"published",
               {{"habitat", accuracy.habitat_published},
                {"habitat_by_ets", accuracy.habitat_by_ets},
                {"neusight", accuracy.neusight_published}}}}
      .dump();
}

Status add_published(OtherGpusAccuracy& accuracy) {
  const auto folder = data_dir();
  if (!folder) return folder.error();
  auto file = JsonObject::read(*folder / "papers" / "other_gpus.json");
  if (!file) return file.error();
  accuracy.habitat_published = file->number("habitat_iterations");
  accuracy.habitat_by_ets = file->number("habitat_by_ets");
  for (JsonObject row : file->objects("neusight")) accuracy.neusight_published.push_back(row.number("error"));
  return file->status();
}

}  // namespace forerun
