#include "lab/accuracy/memory_accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/statistics.h"
#include "lab/accuracy/eval_schema.h"
#include "report/table.h"

namespace forerun {
namespace {

struct PeakErrors {
  int64_t count = 0;
  double mean = 0, median = 0, p90 = 0;
};

PeakErrors peak_errors(const std::vector<MemoryCase>& cases, double MemoryCase::*predicted,
                       double MemoryCase::*measured) {
  std::vector<double> errors;
  for (const MemoryCase& c : cases) {
    if (c.*predicted > 0 && c.*measured > 0) errors.push_back(std::abs(c.*predicted - c.*measured) / (c.*measured));
  }
  PeakErrors result{.count = static_cast<int64_t>(errors.size())};
  if (errors.empty()) return result;
  std::sort(errors.begin(), errors.end());
  for (const double error : errors) result.mean += error / static_cast<double>(errors.size());
  result.median = sorted_quantile_lower(errors, 0.5);
  result.p90 = sorted_quantile_lower(errors, 0.9);
  return result;
}

struct LimitAnswers {
  int64_t right = 0, all = 0;
};

LimitAnswers limit_answers(const std::vector<MemoryCase>& cases) {
  LimitAnswers answers;
  for (const MemoryCase& c : cases) {
    if (!c.at_the_limit) continue;
    ++answers.all;
    answers.right += c.did_fit == c.said_to_fit ? 1 : 0;
  }
  return answers;
}

std::string share_text(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::vector<std::string> cells(const std::string& name, const std::vector<MemoryCase>& cases) {
  const PeakErrors allocated = peak_errors(cases, &MemoryCase::allocated, &MemoryCase::measured_allocated);
  const PeakErrors reserved = peak_errors(cases, &MemoryCase::reserved, &MemoryCase::measured_reserved);
  const LimitAnswers limit = limit_answers(cases);
  const auto text = [](const PeakErrors& errors, double value) { return errors.count == 0 ? "-" : share_text(value); };
  return {name,
          allocated.count == 0 ? "-" : grouped(allocated.count),
          text(allocated, allocated.mean),
          text(allocated, allocated.median),
          text(allocated, allocated.p90),
          text(reserved, reserved.mean),
          text(reserved, reserved.p90),
          limit.all == 0 ? "-" : fmt::format("{} of {}", limit.right, limit.all),
          limit.all == 0
              ? "-"
              : fmt::format("{:.1f} %", 100.0 * static_cast<double>(limit.right) / static_cast<double>(limit.all))};
}

Table accuracy_table(const std::string& first) {
  return Table({first, "runs", "allocated", "median", "p90", "reserved", "p90", "fits: right", "share"});
}

std::string range_line(const char* name, const RatioRange& range) {
  return fmt::format("  {:<10} {:.4f} to {:.4f}\n", name, range.low, range.high);
}

nlohmann::ordered_json errors_json(const PeakErrors& errors) {
  return {{"runs", errors.count}, {"mean", errors.mean}, {"median", errors.median}, {"p90", errors.p90}};
}

std::map<std::string, std::vector<MemoryCase>> by_family(const std::vector<MemoryCase>& cases) {
  std::map<std::string, std::vector<MemoryCase>> families;
  for (const MemoryCase& c : cases) families[c.family].push_back(c);
  return families;
}

}  // namespace

std::string to_text(const MemoryAccuracy& accuracy) {
  std::string text = fmt::format("memory: {}\n  {}\n\n", accuracy.data, accuracy.tables);
  text += "Error of predicted peaks, mean of |predicted - measured| / measured\n";
  Table table = accuracy_table("predictor");
  std::string notes;
  for (const MemoryPredictor& predictor : accuracy.predictors) {
    table.add(cells(predictor.name, predictor.cases));
    if (!predictor.note.empty()) notes += fmt::format("  {}: {}\n", predictor.name, predictor.note);
  }
  text += table.text() + notes;
  if (accuracy.predictors.empty()) return text;
  text += fmt::format("\n{}, by family\n", accuracy.predictors.front().name);
  Table families = accuracy_table("family");
  for (const auto& [family, cases] : by_family(accuracy.predictors.front().cases)) families.add(cells(family, cases));
  text += families.text();
  text += "\nBetween which multiples of the predicted peak 8 of 10 measured ones lie\n";
  text += range_line("requested", accuracy.intervals.requested) + range_line("allocated", accuracy.intervals.allocated);
  return text + range_line("reserved", accuracy.intervals.reserved) + range_line("driver", accuracy.intervals.driver);
}

std::string to_json(const MemoryAccuracy& accuracy) {
  using Ordered = nlohmann::ordered_json;
  Ordered predictors = Ordered::array();
  for (const MemoryPredictor& predictor : accuracy.predictors) {
    const LimitAnswers limit = limit_answers(predictor.cases);
    Ordered families = Ordered::object();
    for (const auto& [family, cases] : by_family(predictor.cases)) {
      families[family] = {
          {"allocated", errors_json(peak_errors(cases, &MemoryCase::allocated, &MemoryCase::measured_allocated))},
          {"reserved", errors_json(peak_errors(cases, &MemoryCase::reserved, &MemoryCase::measured_reserved))}};
    }
    predictors.push_back(
        {{"name", predictor.name},
         {"allocated",
          errors_json(peak_errors(predictor.cases, &MemoryCase::allocated, &MemoryCase::measured_allocated))},
         {"reserved", errors_json(peak_errors(predictor.cases, &MemoryCase::reserved, &MemoryCase::measured_reserved))},
         {"fits", {{"right", limit.right}, {"runs", limit.all}}},
         {"families", families},
         {"note", predictor.note}});
  }
  return Ordered{
      {"schema", eval_schema("memory")}, {"suite", "memory"},
      {"data", accuracy.data},           {"tables", accuracy.tables},
      {"predictors", predictors},        {"intervals", Ordered::parse(to_json(accuracy.intervals, accuracy.data))}}
      .dump();
}

}  // namespace forerun
