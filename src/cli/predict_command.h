// The verb `predict`, apart from how it reads files: the program that `./run demo` builds first goes without.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/predict.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "cli/html_option.h"
#include "cli/job_options.h"
#include "cli/memory_options.h"
#include "cli/setup_options.h"

namespace forerun::cli {

// Where the times of ops that a predictor gives are written.
struct OpTraceFiles {
  std::string csv, svg, chrome;  // empty: nowhere
  [[nodiscard]] bool any() const { return !csv.empty() || !svg.empty() || !chrome.empty(); }
};

struct PredictOptions {
  std::string model;
  std::string gpu;
  std::vector<std::string> device_files;
  std::string machine;
  int64_t batch = 0;
  std::vector<std::string> settings;
  SetupOptions setup;
  MemoryOptions memory;
  MemoryFiles memory_files;
  JobLength job;
  PriceOptions prices;
  WorkLimits limits;
  std::vector<std::string> with;  // learned predictors that are asked beside Forerun
  std::string weights;            // folder of weights of the user's own, for one of those
  OpTraceFiles op_trace;
  HtmlOption html;
  std::string kernels;  // file for what a compiled iteration runs
  bool details = false;
  bool brief = false;
  bool json = false;
  bool csv = false;
};

// What the verb does with a MODEL that may be a file, and with predictors that this program may not have.
struct PredictFiles {
  Result<std::optional<FileKind>> (*kind)(const std::string& model);  // nothing where it is a name
  RunBuilder* build_run;
  int (*predict_records)(const PredictOptions& options, const CostModels& cost_models);  // the exit code
  int (*ask)(const PredictOptions& options);                                             // --with; the exit code
};

void add_predict_with(const PredictFiles& files, CLI::App& app, Run& chosen);

// The words of --set; an Error is one of usage.
Result<Settings> predict_settings(const PredictOptions& options);
// What the options ask about a model with these settings.
Result<PredictRequest> predict_request(const PredictOptions& options, std::optional<FileKind> file, Settings settings);

// As --json, --csv or text. `compiled`: beside it; null: the model was not compiled.
void print_prediction(const PredictOptions& options, const Prediction& p, const CompiledPrediction* compiled = nullptr);

}  // namespace forerun::cli
