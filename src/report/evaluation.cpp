#include "report/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "learn/training_session.h"
#include "report/table.h"

namespace forerun {
namespace {

using learn::Evaluation;
using learn::Target;

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string title(Target quantity) {
  switch (quantity) {
    case Target::iteration_ms: return "iteration time (RMSE in ms)";
    case Target::gpu_busy_ms: return "GPU busy time (RMSE in ms)";
    case Target::peak_bytes: break;
  }
  return "peak memory (RMSE in GB)";
}

std::string rmse(const Evaluation& evaluation) {
  const double scale = evaluation.quantity == Target::peak_bytes ? 1e-9 : 1;
  return fmt::format("{:.1f}", evaluation.all.rmse * scale);
}

const Evaluation* find(const SuiteRow& row, Target quantity) {
  for (const Evaluation& evaluation : row.evaluations) {
    if (evaluation.quantity == quantity) return &evaluation;
  }
  return nullptr;
}

std::string published_for(const std::string& suite, const std::string& predictor, Target quantity) {
  for (const PublishedFigure& figure : published_figures()) {
    if (suite == figure.suite && predictor == figure.predictor && quantity == figure.quantity)
      return percent(figure.mre);
  }
  return "-";
}

// The errors of all predictors for one quantity; those that have none are left out.
std::string overall(const SuiteResult& result, Target quantity) {
  Table table({"predictor", "MRE", "median", "p90", "bias", "RMSE", "GPU-bound", "host-bound", "published"});
  bool any = false;
  for (const SuiteRow& row : result.rows) {
    const Evaluation* evaluation = find(row, quantity);
    if (evaluation == nullptr) continue;
    any = true;
    std::string gpu = "-";
    std::string host = "-";
    for (const learn::ErrorRow& bound : evaluation->by_bound) {
      if (bound.key == "gpu") gpu = percent(bound.errors.mre);
      if (bound.key == "host") host = percent(bound.errors.mre);
    }
    const learn::ErrorSummary& all = evaluation->all;
    table.add({row.label, percent(all.mre), percent(all.median), percent(all.p90), percent(all.bias), rmse(*evaluation),
               gpu, host, published_for(result.suite, row.predictor, quantity)});
  }
  if (!any) return "";
  std::string text = fmt::format("{}\n{}", title(quantity), table.text());
  for (const PublishedFigure& figure : published_figures()) {
    const bool ours = std::any_of(result.rows.begin(), result.rows.end(),
                                  [&](const SuiteRow& row) { return row.predictor == figure.predictor; });
    if (result.suite != figure.suite || figure.quantity != quantity || ours) continue;
    text += fmt::format("  published: {} {} ({})\n", figure.system, percent(figure.mre), figure.setting);
  }
  return text + "\n";
}

using Rows = std::vector<learn::ErrorRow> Evaluation::*;

// MRE of iteration time by group or length, a column for each predictor.
std::string broken_down(const SuiteResult& result, const std::string& what, Rows rows) {
  std::vector<std::string> heading = {what, "examples"};
  std::set<std::string> keys;
  for (const SuiteRow& row : result.rows) {
    heading.push_back(row.label);
    if (const Evaluation* evaluation = find(row, Target::iteration_ms)) {
      for (const learn::ErrorRow& part : evaluation->*rows) keys.insert(part.key);
    }
  }
  if (keys.empty()) return "";
  Table table(heading);
  for (const std::string& key : keys) {
    std::vector<std::string> cells = {key, "-"};
    for (const SuiteRow& row : result.rows) {
      cells.emplace_back("-");
      const Evaluation* evaluation = find(row, Target::iteration_ms);
      if (evaluation == nullptr) continue;
      for (const learn::ErrorRow& part : evaluation->*rows) {
        if (part.key != key) continue;
        cells[1] = grouped(part.errors.count);
        cells.back() = percent(part.errors.mre);
      }
    }
    table.add(cells);
  }
  return fmt::format("iteration time, MRE by {}\n{}\n", what, table.text());
}

}  // namespace

// The files of the ETS authors divide by the prediction, ours by the measurement; both are shares of a few percent.
const std::vector<PublishedFigure>& published_figures() {
  static const std::vector<PublishedFigure> figures = {
      {"ets-t4", "ets", "ETS", Target::iteration_ms, 0.073, "T4, the authors' evaluation models"},
      {"ets-t4", "op_mlp", "op-based", Target::iteration_ms, 0.175, "T4, the authors' evaluation models"},
      {"ets-t4", "grouping_gcn", "grouping GCN", Target::iteration_ms, 0.368, "T4, the authors' evaluation models"},
      {"h200", "ets", "ETS", Target::iteration_ms, 0.059, "ETS paper, unseen models, older GPUs"},
      {"h200", "habitat", "Habitat", Target::iteration_ms, 0.119, "ETS paper, unseen models, older GPUs"},
      {"h200", "dnnperf", "DNNPerf", Target::iteration_ms, 0.074, "DNNPerf paper"},
      {"h200", "mlp", "MLP", Target::iteration_ms, 0.180, "DNNPerf paper"},
      {"h200", "birnn", "BiRNN", Target::iteration_ms, 0.208, "DNNPerf paper"},
      {"h200", "arnn", "ARNN", Target::iteration_ms, 0.209, "DNNPerf paper"},
      {"h200", "gbdt", "GBDT", Target::iteration_ms, 0.310, "DNNPerf paper"},
      {"h200", "brp_nas", "BRP-NAS", Target::iteration_ms, 0.952, "DNNPerf paper"},
      {"h200", "dnnperf", "DNNPerf", Target::peak_bytes, 0.137, "DNNPerf paper"},
      {"h200", "gbdt", "GBDT", Target::peak_bytes, 0.156, "DNNPerf paper"},
      {"h200", "mlp", "MLP", Target::peak_bytes, 0.215, "DNNPerf paper"},
      {"h200", "birnn", "BiRNN", Target::peak_bytes, 0.223, "DNNPerf paper"},
      {"h200", "arnn", "ARNN", Target::peak_bytes, 0.255, "DNNPerf paper"},
      {"h200", "brp_nas", "BRP-NAS", Target::peak_bytes, 0.337, "DNNPerf paper"},
  };
  return figures;
}

std::string to_text(const SuiteResult& result) {
  std::string text = fmt::format("{}: {} test examples; {}\n\n", result.suite, grouped(result.examples), result.data);
  for (const Target quantity : {Target::iteration_ms, Target::gpu_busy_ms, Target::peak_bytes}) {
    text += overall(result, quantity);
  }
  text += broken_down(result, "family", &Evaluation::by_group);
  text += broken_down(result, "number of ops", &Evaluation::by_length);
  return text;
}

std::string to_json(const SuiteResult& result) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const SuiteRow& row : result.rows) {
    Json evaluations = Json::array();
    for (const Evaluation& evaluation : row.evaluations) evaluations.push_back(learn::to_json(evaluation));
    rows.push_back({{"predictor", row.predictor},
                    {"label", row.label},
                    {"trained_on", row.trained_on},
                    {"seconds", row.seconds},
                    {"evaluations", evaluations}});
  }
  Json published = Json::array();
  for (const PublishedFigure& figure : published_figures()) {
    if (result.suite != figure.suite) continue;
    published.push_back({{"predictor", figure.predictor},
                         {"system", figure.system},
                         {"quantity", learn::name_of(figure.quantity)},
                         {"mre", figure.mre},
                         {"setting", figure.setting}});
  }
  return Json{{"suite", result.suite},
              {"data", result.data},
              {"examples", result.examples},
              {"predictors", rows},
              {"published", published}}
      .dump();
}

}  // namespace forerun
