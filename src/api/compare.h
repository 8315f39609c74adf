// "Which GPU is this run best trained on?": one workload predicted for many GPUs, side by side, with what it costs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/work_control.h"
#include "predict/predict.h"

namespace forerun {

// What an hour of one GPU costs, in whatever currency the user thinks in.
struct GpuPrice {
  std::string gpu;  // as the catalogue has it
  double per_hour = 0;
};

// "h100=2.5,a100=1.2", each GPU by name or alias and once. A price is from 0 to a million.
Result<std::vector<GpuPrice>> parse_prices(const std::vector<std::string>& texts, const DeviceCatalogue& devices);

struct CompareRequest {
  ModelRequest model;
  std::vector<std::string> gpus;  // by name; empty: all that the catalogue has
  MemoryQuestion memory;
  std::vector<GpuPrice> prices;  // of GPUs that are compared
  int64_t iterations = 0;        // of the whole run, for its time and cost; 0: not asked for
  unsigned threads = 0;          // 0: as many as the machine has
};

// One GPU, and what was predicted for it or why nothing could be.
struct CompareRow {
  std::string gpu;
  Result<Prediction> prediction;
  double speed = 0;                            // samples a second over those of the fastest that fits; 0: not known
  std::optional<double> price;                 // an hour
  std::optional<double> cost_million_samples;  // of one epoch over a million samples
  std::optional<double> run_hours;             // of CompareRequest::iterations
  std::optional<double> run_cost;

  // Whether the run can be trained there: it fits, or may.
  [[nodiscard]] bool may_fit() const {
    return prediction.ok() && prediction->memory_answer.verdict != FitVerdict::does_not_fit;
  }
};

struct CompareAnswer {
  std::string model;
  int64_t iterations = 0;
  // GPUs that hold the run first, then those that may, those that do not, and those it cannot be built for; among like ones
  // the fastest first.
  std::vector<CompareRow> rows;

  [[nodiscard]] const CompareRow* fastest() const;   // that surely fits; null: none does
  [[nodiscard]] const CompareRow* cheapest() const;  // by cost of a sample, of those that surely fit and have a price
};

// A GPU that cannot run the model (it has no units for the precision) is a row with its Error; where it is none of a GPU's
// fault, as a name that the zoo does not have, the whole question has that Error.
Result<CompareAnswer> compare_gpus(const CompareRequest& request, const CostModels& cost_models,
                                   const WorkControl& control = {});

}  // namespace forerun
