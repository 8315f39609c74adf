// What a calibration of the machine brings, as text and JSON: the table of `forerun eval --suite calibration`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace forerun {

struct CalibrationRow {
  std::string what;  // "not calibrated", "machine-5.json", "trees of this GPU"
  int64_t readings = 0;
  double minutes = 0;
  int64_t runs = 0;
  double mean = 0;  // of |predicted - measured| / measured
  double median = 0;
  double within = 0;  // share of the runs that lie in the range of the answer; below 0: there is none
  std::map<std::string, double> families;  // mean of each
};

struct CalibrationAccuracy {
  std::string gpu;
  std::vector<CalibrationRow>
      busy;  // GPU busy time of the test families, the GPU's own trees left out but in the last row
  std::vector<CalibrationRow> host;  // iteration time of those that the host bounds, with all trees
  std::string kept;                  // the file that ranges were written to; empty: none
};

std::string to_text(const CalibrationAccuracy& accuracy);
std::string to_json(const CalibrationAccuracy& accuracy);

}  // namespace forerun
