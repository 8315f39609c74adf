// "Which GPU is this run best trained on?": one workload predicted for many GPUs, side by side, with the whole run's time and cost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/prices.h"
#include "base/work_control.h"
#include "predict/predict.h"

namespace forerun {

enum class CompareBy : uint8_t { time, cost };

struct CompareRequest {
  ModelRequest model;
  std::vector<std::string> gpus;  // by name; empty: all that the catalogue has
  MemoryQuestion memory;
  Prices prices;
  std::vector<GpuPrice> given;  // of `prices`, those that were given for this question: of GPUs that are compared
  JobLength job;                // the whole run; nothing: its time and cost are not asked for
  CompareBy by = CompareBy::time;
  std::optional<double> deadline_hours;  // for the whole run
  std::optional<double> budget;          // in the prices' currency, for the whole run
  bool largest_batch = true;             // also how large a batch would fit
  unsigned threads = 0;                  // 0: as many as the machine has
};

// One GPU, and what was predicted for it or why nothing could be.
struct CompareRow {
  std::string gpu;
  std::string short_name;  // its first alias, by which users ask for it
  Measured measured = Measured::never;
  Result<Prediction> prediction;               // with its job, where the run's length is told
  std::optional<int64_t> largest_batch;        // by lines between batches that were replayed; 0: not even one sample
  double speed = 0;                            // samples a second over those of the fastest that fits; 0: not known
  std::optional<double> price;                 // an hour
  std::optional<double> cost_million_samples;  // of one epoch over a million samples
  std::optional<double> run_hours;
  std::optional<double> run_cost;
  std::optional<double> run_energy;  // kWh
  bool in_time = true;               // the run ends before the deadline, as far as is expected
  bool in_budget = true;             // it has a price, and costs no more than the budget
  bool pareto = false;  // surely fits, and no other such GPU is both as cheap and as fast, and better in one

  // Whether the run can be trained there: it fits, or may.
  [[nodiscard]] bool may_fit() const {
    return prediction.ok() && prediction->memory_answer.verdict != FitVerdict::does_not_fit;
  }
  [[nodiscard]] bool surely_fits() const {
    return prediction.ok() && prediction->memory_answer.verdict == FitVerdict::fits;
  }
  [[nodiscard]] bool meets_limits() const { return in_time && in_budget; }
};

struct CompareAnswer {
  std::string model;
  std::string currency;
  int64_t iterations = 0;  // of the whole run; 0: not asked for
  CompareBy by = CompareBy::time;
  std::optional<double> deadline_hours;
  std::optional<double> budget;
  // GPUs that hold the run first, then those that may, those that do not, and those it cannot be built for; among like ones
  // those within deadline and budget first, then by what was asked for: the fastest, or the cheapest.
  std::vector<CompareRow> rows;

  // Of those that surely fit and meet the limits; null: none does.
  [[nodiscard]] const CompareRow* fastest() const;
  [[nodiscard]] const CompareRow* cheapest() const;  // by cost of a sample, of those that have a price
  // Where no GPU can run it, and all for the same reason; null otherwise.
  [[nodiscard]] const Error* same_error() const;
};

// "12h", "90min", "3d", "45s" as hours; a number alone is hours too.
Result<double> parse_deadline(const std::string& text);

// A GPU that cannot run the model (it has no units for the precision) is a row with its Error; where it is none of a GPU's
// fault, as a name that the zoo does not have, the whole question has that Error.
Result<CompareAnswer> compare_gpus(const CompareRequest& request, const CostModels& cost_models,
                                   const WorkControl& control = {});

}  // namespace forerun
