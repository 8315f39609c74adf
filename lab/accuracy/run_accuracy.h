// How well published runs on many GPUs are predicted: a line for each source, those to look at apart from those that judge; and
// what --search makes of some of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/quantity.h"

namespace forerun {

struct RunCase {
  std::string source, model, gpu, plan;
  int64_t gpus = 0;
  bool judges = false;
  bool sure = true;  // false: shown, and in no mean
  Nanoseconds measured, predicted, low, high;

  [[nodiscard]] double error() const;  // of the prediction, relative to what was measured
  [[nodiscard]] bool covered() const { return low <= measured && measured <= high; }
};

// The best plan of a search beside the published one.
struct SearchCase {
  RunCase run;
  std::string best;
  Nanoseconds best_time;
  bool best_validated = true;

  [[nodiscard]] bool near() const;      // the published plan is predicted within 10 %
  [[nodiscard]] bool flatters() const;  // the best plan is 15 % faster than what was published, and nothing says so
};

// A run that could not be asked for, and why.
struct RefusedRun {
  std::string run, why;
};

struct RunAccuracy {
  std::vector<RunCase> cases;
  std::vector<SearchCase> searches;
  std::vector<RefusedRun> refused;
  bool each = false;  // a line for each run too
};

struct RunFigures {
  int64_t runs = 0;
  double mean = 0, median = 0, bias = 0, worst = 0, covered = 0;
};
// Of the cases that are sure; `source`: of all where nothing is given.
RunFigures figures_of(const RunAccuracy& accuracy, bool judges, const std::optional<std::string>& source = {});

std::string to_text(const RunAccuracy& accuracy);
std::string to_json(const RunAccuracy& accuracy);

}  // namespace forerun
