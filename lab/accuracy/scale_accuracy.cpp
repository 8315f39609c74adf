#include "lab/accuracy/scale_accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "lab/accuracy/eval_schema.h"
#include "report/table.h"

namespace forerun {
namespace {

struct ScaleRow {
  int64_t count = 0;
  double error = 0;
  double bias = 0;
  double worst = 0;

  void add(const ScaleCase& c) {
    ++count;
    error += std::abs(c.error());
    bias += c.error();
    worst = std::max(worst, std::abs(c.error()));
  }
  [[nodiscard]] double mean() const { return count > 0 ? error / static_cast<double>(count) : 0; }
  [[nodiscard]] double mean_bias() const { return count > 0 ? bias / static_cast<double>(count) : 0; }
};

// By use (predicted before fitted), number of GPUs and group.
using ScaleRows = std::map<std::tuple<bool, int64_t, std::string>, ScaleRow>;

ScaleRows accuracy_rows(const ScaleAccuracy& accuracy) {
  ScaleRows rows;
  for (const ScaleCase& c : accuracy.cases) rows[{c.fitted, c.gpus, c.group}].add(c);
  return rows;
}

std::vector<std::string> accuracy_cells(const std::string& use, const std::string& gpus, const std::string& group,
                                        const ScaleRow& row) {
  return {
      use, gpus, group, grouped(row.count), percent(row.mean()), signed_percent(row.mean_bias()), percent(row.worst)};
}

}  // namespace

double ScaleCase::error() const {
  return static_cast<double>(predicted.value - measured.value) /
         static_cast<double>(std::max<int64_t>(measured.value, 1));
}

double ScaleAccuracy::mean_error(bool of_fitted, bool several) const {
  ScaleRow sum;
  for (const ScaleCase& c : cases) {
    if (c.fitted == of_fitted && several_machines(c) == several) sum.add(c);
  }
  return sum.mean();
}

std::string to_text(const ScaleAccuracy& accuracy) {
  Table table({"", "GPUs", "plan", "iterations", "mean error", "bias", "worst"});
  table.align_left(2);
  ScaleRow sums[3];  // predicted on one machine, on several, and fitted to
  for (const auto& [key, row] : accuracy_rows(accuracy)) {
    const auto& [fitted, gpus, group] = key;
    table.add(accuracy_cells(fitted ? "fitted to" : "predicted", fmt::format("{}", gpus), group, row));
  }
  for (const ScaleCase& c : accuracy.cases) sums[c.fitted ? 2 : accuracy.several_machines(c) ? 1 : 0].add(c);
  for (const size_t i : {0, 1, 2}) {
    const std::string which = sums[1].count == 0 || i == 2 ? "" : i == 1 ? "several machines" : "one machine";
    if (sums[i].count > 0) table.add(accuracy_cells(i == 2 ? "fitted to" : "predicted", "all", which, sums[i]));
  }
  return fmt::format("{}\n{}{}{}", accuracy.title, table.text(), accuracy.reference,
                     accuracy.reference.empty() ? "" : "\n");
}

std::string to_json(const ScaleAccuracy& accuracy) {
  nlohmann::ordered_json groups = nlohmann::ordered_json::array();
  for (const auto& [key, row] : accuracy_rows(accuracy)) {
    const auto& [fitted, gpus, group] = key;
    groups.push_back({{"fitted", fitted},
                      {"gpus", gpus},
                      {"plan", group},
                      {"iterations", row.count},
                      {"mape", row.mean()},
                      {"bias", row.mean_bias()},
                      {"worst", row.worst}});
  }
  nlohmann::ordered_json json = {{"schema", eval_schema(accuracy.suite)},
                                 {"suite", accuracy.suite},
                                 {"title", accuracy.title},
                                 {"mape_predicted", accuracy.mean_error(false)},
                                 {"mape_fitted", accuracy.mean_error(true)},
                                 {"groups", groups}};
  const bool several = std::any_of(accuracy.cases.begin(), accuracy.cases.end(),
                                   [&](const ScaleCase& c) { return accuracy.several_machines(c); });
  if (several) json["mape_several_machines"] = accuracy.mean_error(false, true);
  return json.dump();
}

}  // namespace forerun
