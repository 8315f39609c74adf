#include "lab/accuracy/throughput_accuracy.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "lab/accuracy/eval_schema.h"
#include "report/table.h"

namespace forerun {
namespace {

struct MeanOf {
  double sum = 0;
  int64_t count = 0;
  void add(double value) {
    sum += value;
    ++count;
  }
  [[nodiscard]] double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
};

std::string rows_text(const ThroughputAccuracy& accuracy) {
  Table table({"network", "model", "schedule", "GPUs", "measured/s", "predicted/s", "error"});
  table.align_left(1);
  table.align_left(2);
  for (const ThroughputCase& row : accuracy.cases) {
    table.add({row.network, row.model, row.schedule + (row.fitted ? " *" : ""), std::to_string(row.gpus),
               fmt::format("{:.1f}", row.measured), fmt::format("{:.1f}", row.predicted), signed_percent(row.error())});
  }
  return table.text();
}

std::string schedules_text(const ThroughputAccuracy& accuracy) {
  std::map<std::string, std::map<std::string, MeanOf>> means;  // by schedule, by network
  std::vector<std::string> networks, schedules;
  const auto note = [](std::vector<std::string>& list, const std::string& name) {
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
  };
  for (const ThroughputCase& row : accuracy.cases) {
    note(networks, row.network);
    note(schedules, row.schedule + (row.fitted ? " *" : ""));
    means[schedules.back()];
    means[row.schedule + (row.fitted ? " *" : "")][row.network].add(std::abs(row.error()));
  }
  std::vector<std::string> heading = {"mean error"};
  heading.insert(heading.end(), networks.begin(), networks.end());
  Table table(heading);
  for (const std::string& schedule : schedules) {
    std::vector<std::string> cells = {schedule};
    for (const std::string& network : networks) {
      const MeanOf& mean = means[schedule][network];
      cells.push_back(mean.count > 0 ? percent(mean.mean()) : "-");
    }
    table.add(cells);
  }
  return table.text();
}

std::string links_text(const ThroughputAccuracy& accuracy) {
  Table table({"link", "model", "exchange", "GB/s", "of its rate"});
  table.align_left(1);
  table.align_left(2);
  for (const FittedLink& link : accuracy.links) {
    table.add({link.network, link.model, link.architecture, fmt::format("{:.2f}", link.gb_per_second),
               percent(link.gb_per_second / link.line_rate, 0)});
  }
  return table.text();
}

}  // namespace

double ThroughputAccuracy::mean_error(bool with_fitted) const {
  MeanOf mean;
  for (const ThroughputCase& row : cases) {
    if (with_fitted || !row.fitted) mean.add(std::abs(row.error()));
  }
  return mean.mean();
}

std::string to_text(const ThroughputAccuracy& accuracy) {
  return fmt::format(
      "Throughput of data-parallel training: {}\n\n{}\n{}\n"
      "Bandwidths, fitted to the rows with * (bulk-synchronous: all of a model in one message behind the backward "
      "pass)\n"
      "{}\n"
      "Mean error of the rows that nothing was fitted to: {} ({} with one bandwidth a network for all models);\n"
      "of all rows {}\n",
      accuracy.data, rows_text(accuracy), schedules_text(accuracy), links_text(accuracy),
      percent(accuracy.mean_error(false)), percent(accuracy.one_bandwidth_error), percent(accuracy.mean_error(true)));
}

std::string to_json(const ThroughputAccuracy& accuracy) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const ThroughputCase& row : accuracy.cases) {
    rows.push_back({{"network", row.network},
                    {"model", row.model},
                    {"schedule", row.schedule},
                    {"gpus", row.gpus},
                    {"measured", row.measured},
                    {"predicted", row.predicted},
                    {"error", row.error()},
                    {"fitted", row.fitted}});
  }
  nlohmann::ordered_json links = nlohmann::ordered_json::array();
  for (const FittedLink& link : accuracy.links) {
    links.push_back({{"network", link.network},
                     {"model", link.model},
                     {"exchange", link.architecture},
                     {"gb_per_s", link.gb_per_second},
                     {"line_rate_gb_per_s", link.line_rate}});
  }
  const nlohmann::ordered_json all = {{"schema", eval_schema("ddl-benchmark")},
                                      {"suite", "ddl-benchmark"},
                                      {"data", accuracy.data},
                                      {"mean_error", accuracy.mean_error(false)},
                                      {"mean_error_all_rows", accuracy.mean_error(true)},
                                      {"mean_error_one_bandwidth", accuracy.one_bandwidth_error},
                                      {"rows", std::move(rows)},
                                      {"links", std::move(links)}};
  return all.dump();
}

}  // namespace forerun
