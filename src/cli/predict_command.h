// The verb `predict`, apart from how it reads files: the program that `./run demo` builds first goes without.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/predict.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "cli/memory_options.h"
#include "cli/setup_options.h"

namespace forerun::cli {

struct PredictOptions {
  std::string model;
  std::string gpu;
  std::vector<std::string> device_files;
  int64_t batch = 0;
  std::vector<std::string> settings;
  SetupOptions setup;
  MemoryOptions memory;
  MemoryFiles memory_files;
  WorkLimits limits;
  bool json = false;
  bool csv = false;
};

// What the verb does with a MODEL that may be a file.
struct PredictFiles {
  Result<std::optional<FileKind>> (*kind)(const std::string& model);  // nothing where it is a name
  RunBuilder* build_run;
  int (*predict_records)(const PredictOptions& options, const CostModels& cost_models);  // the exit code
};

void add_predict_with(const PredictFiles& files, CLI::App& app, Run& chosen);

// As --json, --csv or text.
void print_prediction(const PredictOptions& options, const Prediction& p);

}  // namespace forerun::cli
