#include "report/resource_accuracy.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "report/table.h"

namespace forerun {
namespace {

constexpr const char* kBurstMetricNames[] = {"idle_ms", "burst_ms", "amount"};
constexpr const char* kBurstResources[] = {"gpu", "memory", "send", "receive"};

struct ErrorSum {
  double sum = 0;
  int64_t count = 0;

  void add(double simulated, double measured) {
    if (!(measured > 0)) return;
    sum += std::abs(simulated - measured) / measured;
    ++count;
  }
  [[nodiscard]] double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
};

// By setting ("" for all) and resource: three metrics and all of them.
using BurstErrors = std::map<std::pair<std::string, std::string>, std::array<ErrorSum, 4>>;

BurstErrors burst_errors(const ResourceAccuracy& accuracy) {
  BurstErrors errors;
  for (const BurstCase& c : accuracy.cases) {
    for (const std::string& setting : {c.setting, std::string()}) {
      auto& row = errors[{setting, c.resource}];
      for (size_t i = 0; i < 3; ++i) {
        row[i].add(c.simulated[i], c.measured[i]);
        row[3].add(c.simulated[i], c.measured[i]);
      }
    }
  }
  return errors;
}

}  // namespace

double ResourceAccuracy::mean_error(const std::string& resource, size_t metric) const {
  ErrorSum error;
  for (const BurstCase& c : cases) {
    if (c.resource == resource) error.add(c.simulated[metric], c.measured[metric]);
  }
  return error.mean();
}

std::string to_text(const ResourceAccuracy& accuracy) {
  Table table({"setting", "resource", "idle duration", "burst duration", "burst amount", "mean"});
  table.align_left(1);
  const BurstErrors errors = burst_errors(accuracy);
  for (const bool all : {false, true}) {
    for (const auto& [key, row] : errors) {
      if (key.first.empty() != all) continue;
      table.add({all ? "all" : key.first, key.second, percent(row[0].mean()), percent(row[1].mean()),
                 percent(row[2].mean()), percent(row[3].mean())});
    }
  }
  return fmt::format("{}\n{}{} records, {} passed over\n", accuracy.title, table.text(), grouped(accuracy.records),
                     grouped(accuracy.passed_over));
}

std::string to_json(const ResourceAccuracy& accuracy) {
  nlohmann::ordered_json resources;
  for (const char* resource : kBurstResources) {
    for (size_t i = 0; i < 3; ++i) resources[resource][kBurstMetricNames[i]] = accuracy.mean_error(resource, i);
  }
  return nlohmann::ordered_json{{"title", accuracy.title},
                                {"records", accuracy.records},
                                {"passed_over", accuracy.passed_over},
                                {"mean_error", resources}}
      .dump();
}

}  // namespace forerun
