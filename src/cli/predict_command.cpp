// forerun predict MODEL: iteration time and memory.
#include <fmt/core.h>

#include "api/predict.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "cli/memory_options.h"
#include "cli/setup_options.h"
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
  WorkLimits limits;
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
  PredictRequest question{.gpu = options.gpu, .memory_log = options.memory_files.any()};
  ModelRequest& request = question.model;
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
  Result<MemoryQuestion> memory = parse_memory(options.memory);
  if (!memory) return fail(memory.error());
  question.memory = std::move(*memory);
  const Result<PredictAnswer> answer = predict(question, cost_models, CommandWork(options.limits).control());
  if (!answer) return fail(answer.error());
  const Prediction& p = answer->prediction;
  if (options.memory_files.any()) {
    if (const Status status = write_memory_files(options.memory_files, *answer); !status.ok()) {
      return fail(status.error());
    }
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
  Result<MemoryQuestion> memory = parse_memory(options.memory);
  if (!memory) return fail(memory.error());
  const bool text = !options.json && !options.csv;
  bool first = true;
  const RecordHandlers handlers{
      .prediction =
          [&](const Prediction& p) {
            if (text && first) fmt::print("{}", summary_header());
            if (options.csv && first) fmt::print("{}", csv_header());
            first = false;
            if (text) {
              fmt::print("{}", summary_line(p));
            } else {
              print(options, p);
            }
          },
      .bad_record = [&](const Error& error) { fmt::print(stderr, "forerun: {}\n", error.message()); }};
  const auto answer =
      predict_records({.file = options.model, .gpu = options.gpu, .memory = std::move(*memory), .errors = text},
                      cost_models, handlers, CommandWork(options.limits, CommandWork::Answer::as_it_comes).control());
  if (!answer) return fail(answer.error());
  const std::vector<Prediction>& predictions = answer->predictions;
  if (options.csv && first) fmt::print("{}", csv_header());
  if (!answer->errors.empty()) fmt::print("\n{}", error_table(answer->errors));
  if (answer->bad > 0) {
    fmt::print(stderr, "forerun: {} of {} records could not be predicted\n", answer->bad,
               answer->bad + static_cast<int64_t>(predictions.size()));
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
  add_work_limits(*verb, options->limits);
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
