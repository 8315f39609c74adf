// Options that say how a model is trained: precision, optimizer, memory layout. Shared by the verbs that take a model.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "api/predict.h"
#include "base/options_text.h"

namespace forerun::cli {

using SetupOptions = SetupText;

// KEY=VALUE of every --set, in order. A key without a value, given twice, or given by another option too (`taken`, with
// the option's name) is an Error.
using Settings = KeyValues;
Result<Settings> parse_settings(const std::vector<std::string>& texts, const Settings& taken = {});

void add_setup_options(CLI::App& verb, SetupOptions& options, const std::string& default_precision = "fp32");

}  // namespace forerun::cli
