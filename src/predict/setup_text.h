// How a model is trained, as users write it: the names of a precision and of an optimizer with its options.
//
//   precision amp_bf16     optimizer adamw     optimizer sgd:momentum=0.9,impl=fused
//
// Parsed once, where the user's words come in (options, cells of a table, a request); a TrainingSetup travels from there.
#pragma once

#include <string>

#include "base/result.h"
#include "graph/training_run.h"

namespace forerun {

struct SetupText {
  std::string precision;  // empty: fp32
  std::string optimizer;  // empty: see ModelRequest::default_optimizer
  bool channels_last = false;
  [[nodiscard]] bool any() const { return !precision.empty() || !optimizer.empty() || channels_last; }
};

// Unknown names are answered with the known ones.
Result<TrainingSetup> parse_setup(const SetupText& text);

// NAME[:key=value,...]; "momentum" is sgd with a momentum of 0.9.
Result<OptimizerSpec> parse_optimizer(const std::string& text);

}  // namespace forerun
