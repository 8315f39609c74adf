// ScaleAnswer: the step of many GPUs as text, JSON and a picture of throughput over the number of GPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scale/step.h"

namespace forerun {

struct ScaleAnswer {
  std::string model;
  int64_t parameters = 0;
  std::string gpu;
  int64_t node = 8;
  std::string within;
  std::string between;
  std::string precision;
  bool searched = false;  // `steps` are plans for one number of GPUs, best first; else one for each number
  std::vector<scale::Step> steps;
  int64_t considered = 0;  // of a search
  int64_t feasible = 0;
  int64_t too_large = 0;
  double seconds = 0;  // the search took; neither form prints it, so that they are the same every time
  Bytes device_memory;
  std::vector<std::string> assumptions;
};

// At most `most` plans of a search.
std::string to_text(const ScaleAnswer& answer, size_t most = 10);
std::string to_json(const ScaleAnswer& answer);
std::string to_svg(const ScaleAnswer& answer);

}  // namespace forerun
