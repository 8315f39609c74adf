#include "lab/eval/kept_results.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "lab/dataset/kept_rows.h"

namespace forerun {
namespace {

using learn::Target;

std::optional<Target> quantity_named(const std::string& name) {
  for (const Target quantity : {Target::iteration_ms, Target::gpu_busy_ms, Target::peak_bytes}) {
    if (name == learn::name_of(quantity)) return quantity;
  }
  return std::nullopt;
}

learn::ErrorSummary summary_from(const nlohmann::json& json) {
  return {.count = json.at("count").get<int64_t>(),
          .mre = json.at("mre").get<double>(),
          .median = json.at("median").get<double>(),
          .p90 = json.at("p90").get<double>(),
          .bias = json.at("bias").get<double>(),
          .rmse = json.at("rmse").get<double>()};
}

std::vector<learn::ErrorRow> rows_from(const nlohmann::json& test, const char* name) {
  std::vector<learn::ErrorRow> rows;
  const auto found = test.find(name);
  if (found == test.end()) return rows;
  for (const auto& [key, errors] : found->items()) rows.push_back({key, summary_from(errors)});
  return rows;
}

// Nothing where a quantity is not known.
std::optional<std::vector<learn::Evaluation>> evaluations_from(const nlohmann::json& tests) {
  std::vector<learn::Evaluation> evaluations;
  for (const auto& test : tests) {
    const auto quantity = quantity_named(test.at("quantity").get<std::string>());
    if (!quantity) return std::nullopt;
    evaluations.push_back({.quantity = *quantity,
                           .all = summary_from(test.at("all")),
                           .by_bound = rows_from(test, "by_bound"),
                           .by_group = rows_from(test, "by_group"),
                           .by_length = rows_from(test, "by_ops")});
  }
  return evaluations;
}

// A row of one line; nothing where the line is not one. Other libraries' exceptions stop here.
std::optional<SuiteRow> row_from(const std::string& line, const std::string& data) {
  try {
    const auto json = nlohmann::json::parse(line);
    SuiteRow row{.predictor = json.at("predictor").get<std::string>(),
                 .label = json.at("label").get<std::string>(),
                 .trained_on = json.value("device", ""),
                 .learned_from = json.value("learned_from", ""),
                 .training = {.epochs = json.value("epochs", int64_t{0}),
                              .best_epoch = json.value("best_epoch", int64_t{0}),
                              .seconds = json.value("seconds", 0.0),
                              .validation_error = json.value("validation_error", 0.0)},
                 .weights = json.value("weights", ""),
                 .kept = true,
                 .kept_date = json.value("date", ""),
                 .stale = json.value("data", "") != data};
    auto test = evaluations_from(json.at("test"));
    auto ood = evaluations_from(json.value("ood", nlohmann::json::array()));
    auto randwire = evaluations_from(json.value("randwire", nlohmann::json::array()));
    // Weights of a random split were trained on what the suites judge.
    const bool divided_alike = json.value("split", to_text(learn::Division{})) == to_text(learn::Division{});
    if (!test || !ood || !randwire || !divided_alike) return std::nullopt;
    row.evaluations = std::move(*test);
    row.ood = std::move(*ood);
    row.randwire = std::move(*randwire);
    return row;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

Result<std::vector<SuiteRow>> read_kept_results(const std::string& path, const std::string& data) {
  return learn::read_kept_rows<SuiteRow>(path, [&](const std::string& line) -> Result<SuiteRow> {
    auto row = row_from(line, data);
    if (row) return std::move(*row);
    return Error{"no result of a training on the split by families", "", "remove the line, or train it again"};
  });
}

}  // namespace forerun
