// Options that say how a model is trained: precision, optimizer, memory layout. Shared by the verbs that take a model.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "api/predict.h"
#include "base/options_text.h"

namespace forerun::cli {

using SetupOptions = SetupText;

using Settings = KeyValues;

void add_setup_options(CLI::App& verb, SetupOptions& options, const std::string& default_precision = "fp32");

// --compile[=MODE], of verbs that can be asked about a compiled model.
CLI::Option* add_compile_option(CLI::App& verb, SetupOptions& options);

// --machine: a machine.json, or none; left out, the one of the configuration folder.
void add_machine_option(CLI::App& verb, std::string& machine);

}  // namespace forerun::cli
