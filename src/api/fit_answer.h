// FitAnswer: the largest batch (or image, or sequence) that a GPU holds, and what would let a larger one in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "predict/prediction.h"

namespace forerun {

// One value of the axis that was tried.
struct FitPoint {
  int64_t value = 0;
  bool fits = false;  // with the margin
  FitVerdict verdict = FitVerdict::does_not_fit;
  Bytes allocated, reserved, driver;
  int64_t retries = 0;  // the allocator gave unused segments back so often
};

// A change to the run, and what it does.
struct FitChange {
  std::string name;                // "bf16 mixed precision"
  std::string how;                 // what to do for it
  Bytes saving;                    // of peak allocated memory, at the answer's value; negative: it takes more
  double time = 1;                 // iteration time at that value, against the answer's
  bool time_modelled = false;      // the time is not from a prediction of its own
  std::optional<int64_t> largest;  // value that fits with it; nothing: not even the smallest
  bool reaches_limit = false;      // the model does not go beyond `largest`
  std::string note;
};

struct FitAnswer {
  std::string axis;                   // "batch"
  int64_t step = 1;                   // values that the model takes are so far apart
  std::optional<int64_t> largest;     // nothing: not even the smallest surely fits
  int64_t smallest = 1;               // value tried
  std::string limit;                  // why the model takes no larger value; empty where memory is the limit
  bool monotone = true;               // no value was found to fit above one that does not
  std::optional<int64_t> fits_again;  // a value above `next` that fits; nothing where none was found
  std::optional<FitPoint> next;       // the value above, which does not fit
  Bytes reserve;                      // kept free
  double margin = 0;                  // share that a run may take beyond its prediction and still fit
  Prediction at;                      // at the largest; where nothing fits, at the smallest
  std::vector<FitChange> changes;
  int64_t graphs = 0;  // training iterations derived
};

}  // namespace forerun
