#include "lab/eval/kept_results.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

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

// A row of one line; nothing where the line is not one. Other libraries' exceptions stop here.
std::optional<SuiteRow> row_from(const std::string& line, const std::string& data) {
  try {
    const auto json = nlohmann::json::parse(line);
    SuiteRow row{.predictor = json.at("predictor").get<std::string>(),
                 .label = json.at("label").get<std::string>(),
                 .trained_on = json.value("device", ""),
                 .training = {.epochs = json.value("epochs", int64_t{0}),
                              .best_epoch = json.value("best_epoch", int64_t{0}),
                              .seconds = json.value("seconds", 0.0),
                              .validation_error = json.at("validation_error").get<double>()},
                 .kept = true,
                 .stale = json.value("data", "") != data};
    for (const auto& test : json.at("test")) {
      const auto quantity = quantity_named(test.at("quantity").get<std::string>());
      if (!quantity) return std::nullopt;
      row.evaluations.push_back({.quantity = *quantity, .all = summary_from(test.at("all"))});
    }
    return row;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

Result<std::vector<SuiteRow>> read_kept_results(const std::string& path, const std::string& data) {
  std::vector<SuiteRow> rows;
  if (!std::filesystem::exists(path)) return rows;
  std::ifstream file(path);
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty()) continue;
    auto row = row_from(line, data);
    if (!row) {
      return Error{"no result of a training", fmt::format("{}:{}", path, number), "remove the line, or train it again"};
    }
    rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace forerun
