// "What do five minutes on one's own GPU bring?": the table of `forerun eval --suite calibration`.
//
// The H200 is taken for a GPU that nobody measured: its trees are left out, so that times are those of the analytic model, and files
// that `python -m forerun.calibrate` wrote there (--machine) correct them. Judged is the GPU busy time of the iterations of data/h200
// whose families are in the part `test`, before and after; the last row has the trees of the whole training set. Ranges that `keep`
// writes are those of the part `ood`, which is judged nowhere here. The analytic model's constants were set by hand with an eye on
// this GPU (data/cost/README.md) and are those of every GPU.
//
// The host: iterations of the test families that the host bounds, predicted with all trees, at the default speed, at the speed that
// readings of the same machine beside other families' runs tell, and by readings beside the run itself.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/work_control.h"
#include "lab/accuracy/calibration_accuracy.h"
#include "records/data_scan.h"

namespace forerun {

struct CalibrationSuiteOptions {
  std::vector<std::string> records;   // files of data/h200
  std::vector<std::string> machines;  // machine.json files of an H200
  bool keep = false;                  // write the ranges to the data folder
  std::function<void(const DataProblem&)> problem;
};

Result<CalibrationAccuracy> evaluate_calibration(const CalibrationSuiteOptions& options,
                                                 const WorkControl& control = {});

}  // namespace forerun
