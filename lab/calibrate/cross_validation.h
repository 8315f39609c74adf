// How well the whole of `predict` does on families it was not fitted to: the training families are left out in turn, the
// trees and the host model fitted to the others, and the iterations of those left out predicted. Measured ops are read
// once; fits of several groups run side by side.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/trees/hybrid_training.h"
#include "records/data_scan.h"

namespace forerun {

struct CrossValidation {
  std::vector<std::string> files;  // of run records and op samples
  int folds = 0;                   // families are left out in so many groups; 0: each on its own
  hybrid::GrowthOptions growth;
  std::function<void(const DataProblem&)> problem;
  unsigned threads = 0;  // that fit at once; 0: as many as the machine has
};

// An iteration of a family that was left out.
struct LeftOutRun {
  std::string id;
  std::string family;
  double iteration_ms = 0;  // predicted
  double gpu_busy_ms = 0;
  bool host_bound = false;
  double measured_ms = 0;
  double measured_gpu_ms = 0;
};

// Progress counts the groups that trees and host model are fitted without.
Result<std::vector<LeftOutRun>> cross_validate(const CrossValidation& request, const WorkControl& control = {});

// The groups in which families are left out: neighbours in the alphabet, often alike (mobilenet_v2, mobilenet_v3), go
// to different groups. `folds` 0 or more than there are families: one each.
std::vector<std::vector<std::string>> fold_families(const std::vector<std::string>& families, int folds);

}  // namespace forerun
