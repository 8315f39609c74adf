#include "lab/accuracy/resource_accuracy.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "lab/accuracy/eval_schema.h"
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

// Three metrics and all of them; and those of unseen families.
struct BurstErrorRow {
  std::array<ErrorSum, 4> all;
  std::array<ErrorSum, 4> unseen;
};
// By setting ("" for all) and resource.
using BurstErrors = std::map<std::pair<std::string, std::string>, BurstErrorRow>;

BurstErrors burst_errors(const ResourceAccuracy& accuracy) {
  BurstErrors errors;
  for (const BurstCase& c : accuracy.cases) {
    for (const std::string& setting : {c.setting, std::string()}) {
      auto& row = errors[{setting, c.resource}];
      for (size_t i = 0; i < 3; ++i) {
        for (const size_t sum : {i, size_t{3}}) {
          row.all[sum].add(c.simulated[i], c.measured[i]);
          if (c.unseen) row.unseen[sum].add(c.simulated[i], c.measured[i]);
        }
      }
    }
  }
  return errors;
}

}  // namespace

double ResourceAccuracy::mean_error(const std::string& resource, size_t metric, bool unseen_only) const {
  ErrorSum error;
  for (const BurstCase& c : cases) {
    if (c.resource == resource && (c.unseen || !unseen_only)) error.add(c.simulated[metric], c.measured[metric]);
  }
  return error.mean();
}

std::string to_text(const ResourceAccuracy& accuracy) {
  Table table({"setting", "resource", "idle duration", "burst duration", "burst amount", "mean", "all families"});
  table.align_left(1);
  const auto shown = [](const ErrorSum& error) { return error.count > 0 ? percent(error.mean()) : std::string("-"); };
  const BurstErrors errors = burst_errors(accuracy);
  for (const bool all : {false, true}) {
    for (const auto& [key, row] : errors) {
      if (key.first.empty() != all) continue;
      table.add({all ? "all" : key.first, key.second, shown(row.unseen[0]), shown(row.unseen[1]), shown(row.unseen[2]),
                 shown(row.unseen[3]), shown(row.all[3])});
    }
  }
  return fmt::format("{}\n{}{} records, {} passed over; all but the last column: families that nothing was fitted to\n",
                     accuracy.title, table.text(), grouped(accuracy.records), grouped(accuracy.passed_over));
}

std::string to_json(const ResourceAccuracy& accuracy) {
  nlohmann::ordered_json resources, unseen;
  for (const char* resource : kBurstResources) {
    for (size_t i = 0; i < 3; ++i) {
      resources[resource][kBurstMetricNames[i]] = accuracy.mean_error(resource, i);
      unseen[resource][kBurstMetricNames[i]] = accuracy.mean_error(resource, i, true);
    }
  }
  return nlohmann::ordered_json{{"schema", eval_schema("testbed")},
                                {"suite", "testbed"},
                                {"title", accuracy.title},
                                {"records", accuracy.records},
                                {"passed_over", accuracy.passed_over},
                                {"mean_error", resources},
                                {"mean_error_of_unseen_families", unseen}}
      .dump();
}

}  // namespace forerun
