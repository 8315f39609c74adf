// forerun predict MODEL: iteration time and memory.
#include <fmt/core.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/memory_options.h"
#include "cli/setup_options.h"
#include "predict/model_file.h"
#include "predict/predict.h"
#include "report/prediction.h"

namespace forerun::cli {
namespace {

struct PredictOptions {
  std::string model;
  std::string gpu;
  std::vector<std::string> device_files;
  int64_t batch = 0;
  std::vector<std::string> settings;
  SetupOptions setup;
  MemoryOptions memory;
  MemoryFiles memory_files;
  bool json = false;
  bool csv = false;
};

void print(const PredictOptions& options, const Prediction& p) {
  if (options.json) {
    fmt::print("{}\n", to_json(p));
  } else if (options.csv) {
    fmt::print("{}", to_csv(p));
  } else {
    fmt::print("{}", to_text(p));
  }
}

int predict_model(const PredictOptions& options, std::optional<FileKind> file, const CostModels& cost_models) {
  const Result<Device> device = cost_models.devices.find(options.gpu.empty() ? kDefaultGpu : options.gpu);
  if (!device) return fail(device.error());
  ModelRequest request;
  request.model = options.model;
  request.file = file;
  if (options.batch > 0) request.batch = options.batch;
  Result<Settings> settings =
      parse_settings(options.settings, options.batch > 0 ? Settings{{"batch", "--batch"}} : Settings{});
  if (!settings) {
    fail(settings.error());
    return kUsage;
  }
  request.settings = std::move(*settings);
  const Result<TrainingSetup> setup = parse_setup(options.setup);
  if (!setup) return fail(setup.error());
  request.setup = *setup;
  request.default_optimizer = options.setup.optimizer.empty();
  const Result<TrainingRun> run = build_run(request, *device);
  if (!run) return fail(run.error());
  const Result<MemoryQuestion> memory = parse_memory(options.memory);
  if (!memory) return fail(memory.error());
  const Prediction p = predict(*run, *device, cost_models, *memory);
  if (options.memory_files.any()) {
    const Status status = write_memory_files(options.memory_files, *run, *device, cost_models.workspaces, *memory);
    if (!status.ok()) return fail(status.error());
  }
  if (options.csv) fmt::print("{}", csv_header());
  print(options, p);
  return p.memory_answer.verdict == FitVerdict::does_not_fit ? kDoesNotFit : kDone;
}

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
                                                 print(options, p);
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

int run(const PredictOptions& options) {
  const Result<CostModels> cost_models = load_cost_models(options.device_files);
  if (!cost_models) return fail(cost_models.error());
  const auto file = model_file(options.model, "predict");
  if (!file) return fail(file.error());
  if (*file == FileKind::records) return predict_file(options, *cost_models);
  return predict_model(options, *file, *cost_models);
}

}  // namespace

void add_predict(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* verb = app.add_subcommand("predict", "Iteration time and memory of a model or of recorded runs");
  verb->add_option("MODEL", options->model,
                   "A name from `forerun zoo`, an ONNX file, or a file of run records (.jsonl, .gz, .zst)")
      ->required();
  verb->add_option("--gpu", options->gpu,
                   "GPU by name (`forerun devices` lists them); default h200, or the recorded one");
  verb->add_option("--batch", options->batch, "Samples an iteration")->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  verb->add_option("--set", options->settings,
                   "KEY=VALUE of the model's family, or of a dynamic ONNX dimension; repeatable")
      ->allow_extra_args(false);
  add_setup_options(*verb, options->setup);
  add_memory_options(*verb, options->memory);
  add_memory_files(*verb, options->memory_files);
  verb->add_option("--device-file", options->device_files, "JSON file with a further GPU; repeatable")
      ->allow_extra_args(false);
  auto* json = verb->add_flag("--json", options->json, "One JSON object a run on standard output");
  verb->add_flag("--csv", options->csv, "One CSV row a run on standard output")->excludes(json);
  verb->footer(
      "Examples:\n"
      "  forerun predict resnet50 --batch 256 --precision amp_bf16 --channels-last\n"
      "  forerun predict vit_b_16 --gpu a100_80gb --set image=384 --optimizer adamw:impl=fused\n"
      "  forerun predict model.onnx --batch 32 --json\n"
      "  forerun predict gpt2_small --zero 3 --gpus 8 --memory-svg memory.svg\n"
      "  forerun predict runs.jsonl.gz --csv > predictions.csv\n"
      "Exit code 3: the run does not fit in the GPU's memory. Where it may or may not (the range of such runs crosses "
      "the\n"
      "limit) the answer says so and the exit code is 0.");
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace forerun::cli
