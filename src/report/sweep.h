// What a sweep found, as a table with the best configuration named.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/sweep.h"

namespace forerun {

// The table of a sweep, of which it keeps what it shows: some hundred bytes a configuration.
class SweepTable {
 public:
  explicit SweepTable(std::vector<std::string> axes) : axes_(std::move(axes)) {}

  void add(std::vector<std::string> values, const Result<Prediction>& prediction);
  [[nodiscard]] std::string text() const;

 private:
  // What is shown of a configuration that could be built.
  struct Figures {
    Nanoseconds iteration, p10, p90, gpu_busy;
    double samples_per_second = 0, tokens_per_second = 0;
    std::optional<double> hours, cost;  // of the whole run
    std::string memory;
    FitVerdict verdict = FitVerdict::fits;
  };
  struct Row {
    std::vector<std::string> values;
    std::optional<Figures> figures;
    std::string fault;  // where there are none
  };
  [[nodiscard]] const Row* best_of(FitVerdict verdict) const;
  [[nodiscard]] std::string setting_text(const Row& row) const;
  [[nodiscard]] std::string conclusion() const;

  std::vector<std::string> axes_;
  std::vector<Row> rows_;
  std::string first_fault_;  // of the first configuration, with where and what to do
  std::string warnings_;     // of the models, each once
};

// One line: the axes under "sweep", then what `predict --json` gives, or "error" and its parts under "fault".
std::string sweep_json(const std::vector<std::string>& axes, const std::vector<std::string>& values,
                       const Result<Prediction>& prediction);

// What such a line says, as far as SweepTable and sweep_csv show it: the same bytes come of it as of what the line was made from.
// `where` names the line in Errors.
struct SweepLine {
  std::vector<std::string> values;
  Result<Prediction> prediction;
};
Result<SweepLine> read_sweep_json(const std::vector<std::string>& axes, const std::string& json,
                                  const std::string& where);

// The columns of `predict --csv` behind those of the axes, less those that an axis has already: each name stands once. A
// configuration that could not be built has no row. `whole_run`: hours and cost of it stand at the end.
std::string sweep_csv_header(const std::vector<std::string>& axes, bool whole_run = false);
std::string sweep_csv(const std::vector<std::string>& axes, const std::vector<std::string>& values,
                      const Prediction& prediction);

}  // namespace forerun
