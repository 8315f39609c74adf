// forerun predict MODEL: iteration time and memory of a model, or of every run of a file.
#include <fmt/core.h>
#include <unistd.h>

#include "cli/predict_command.h"
#include "predict/model_file.h"
#include "report/prediction.h"

namespace forerun::cli {
namespace {

int predict_file(const PredictOptions& options, const CostModels& cost_models) {
  if (options.batch > 0 || !options.settings.empty() || options.setup.any()) {
    fmt::print(stderr,
               "forerun: a recorded run is predicted as it was recorded: --batch, --set, --precision, --optimizer and "
               "--channels-last go with zoo names and ONNX files\n");
    return kUsage;
  }
  if (options.memory_files.any()) {
    fmt::print(stderr, "forerun: --memory-svg, --memory-chrome and --memory-snapshot show one run: give a model\n");
    return kUsage;
  }
  const Result<MemoryQuestion> memory = parse_memory(options.memory);
  if (!memory) return fail(memory.error());
  std::optional<Device> gpu;
  if (!options.gpu.empty()) {
    Result<Device> found = cost_models.devices.find(options.gpu);
    if (!found) return fail(found.error());
    gpu = *found;
  }
  const bool text = !options.json && !options.csv;
  const bool progress = isatty(fileno(stderr)) != 0 && isatty(fileno(stdout)) == 0;
  std::vector<Prediction> predictions;
  int64_t bad = 0;
  if (options.csv) fmt::print("{}", csv_header());
  const Status status = predict_records(options.model, gpu, cost_models,
                                        {.prediction =
                                             [&](const Prediction& p) {
                                               if (text && predictions.empty()) fmt::print("{}", summary_header());
                                               if (text) {
                                                 fmt::print("{}", summary_line(p));
                                               } else {
                                                 print_prediction(options, p);
                                               }
                                               predictions.push_back(p);
                                               if (progress) fmt::print(stderr, "\r{} runs", predictions.size());
                                             },
                                         .bad_record =
                                             [&](const Error& error) {
                                               ++bad;
                                               fmt::print(stderr, "forerun: {}\n", error.message());
                                             }},
                                        *memory);
  if (progress) fmt::print(stderr, "\r");
  if (!status.ok()) return fail(status.error());
  if (predictions.empty() && bad == 0) {
    return fail({"holds no run records", options.model,
                 "its records are op samples or the like: `forerun data summary` tells; a run record is made by "
                 "forerun.capture"});
  }
  // A measured record is compared after it was predicted. Recorded on another GPU than asked for: nothing to compare.
  if (text && !gpu) {
    const Result<std::vector<ErrorSample>> errors = measure_errors(options.model, predictions);
    if (!errors) return fail(errors.error());
    if (!errors->empty()) fmt::print("\n{}", error_table(*errors));
  }
  if (bad > 0) {
    fmt::print(stderr, "forerun: {} of {} records could not be predicted\n", bad,
               bad + static_cast<int64_t>(predictions.size()));
    return kInputAtFault;
  }
  const bool alone = predictions.size() == 1;
  return alone && predictions.front().memory_answer.verdict == FitVerdict::does_not_fit ? kDoesNotFit : kDone;
}

}  // namespace

void add_predict(CLI::App& app, Run& chosen) {
  add_predict_with({.kind = [](const std::string& model) { return model_file(model, "predict"); },
                    .build_run = build_run,
                    .predict_records = predict_file},
                   app, chosen);
}

}  // namespace forerun::cli
