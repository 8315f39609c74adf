// DataNoise: how far repeated measurements lie apart, as data, text and JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report/data_rows.h"

namespace forerun {

enum class NoiseFigure : uint8_t { iteration, gpu_busy, peak_requested, peak_allocated, peak_reserved };
std::string_view name_of(NoiseFigure figure);

struct DataNoise {
  int64_t configurations = 0;
  int64_t repeats = 0;       // records of a configuration that was measured before
  int64_t other_status = 0;  // of them, ones that ran out of memory where the first did not, or the other way round
  // |a - b| / mean(a, b) of every repeat that succeeded, by what bounds the first measurement.
  std::map<std::pair<MeasuredBound, NoiseFigure>, std::vector<double>> differences;
};

std::string to_text(const DataNoise& noise);
std::string to_json(const DataNoise& noise);  // one line

}  // namespace forerun
