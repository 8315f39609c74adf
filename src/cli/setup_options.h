// Options that say how a model is trained: precision, optimizer, memory layout. Shared by the verbs that take a model.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/options_text.h"
#include "base/result.h"
#include "graph/training_run.h"

namespace forerun::cli {

struct SetupOptions {
  std::string precision;
  std::string optimizer;  // "adamw", "sgd:momentum=0.9,impl=fused"
  bool channels_last = false;
  [[nodiscard]] bool any() const { return !precision.empty() || !optimizer.empty() || channels_last; }
};

// KEY=VALUE of every --set, in order. A key without a value, given twice, or given by another option too (`taken`, with
// the option's name) is an Error.
using Settings = KeyValues;
Result<Settings> parse_settings(const std::vector<std::string>& texts, const Settings& taken = {});

void add_setup_options(CLI::App& verb, SetupOptions& options, const std::string& default_precision = "fp32");

// What the options mean; unknown names are answered with the known ones.
Result<TrainingSetup> parse_setup(const SetupOptions& options);

}  // namespace forerun::cli
