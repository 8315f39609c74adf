// The verb `predict` for names of the zoo; what it does with files is given to it.
#include "cli/predict_command.h"

#include <fmt/core.h>

#include <atomic>

#include "base/output_file.h"
#include "base/parallel.h"
#include "cli/job_options.h"
#include "cli/standard_streams.h"
#include "report/prediction.h"
#include "report/prediction_compiled.h"
#include "report/prediction_series.h"

namespace forerun::cli {

void print_prediction(const PredictOptions& options, const Prediction& p, const CompiledPrediction* compiled) {
  if (options.json) {
    fmt::print("{}\n", compiled != nullptr ? to_json(p, *compiled) : to_json(p));
  } else if (options.csv) {
    fmt::print("{}", to_csv(p));
  } else {
    const TextStyle style = text_style(options.details);
    fmt::print("{}", to_text(p, style, compiled));
    if (compiled != nullptr) fmt::print("{}", to_text(*compiled, p, style));
  }
}

Result<Settings> predict_settings(const PredictOptions& options) {
  return parse_settings(options.settings, options.batch > 0 ? Settings{{"batch", "--batch"}} : Settings{});
}

Result<PredictRequest> predict_request(const PredictOptions& options, std::optional<FileKind> file, Settings settings) {
  PredictRequest question{.gpu = options.gpu,
                          .job = options.job,
                          .remedies = !options.brief,
                          .memory_log = options.memory_files.any() || options.html.asked()};
  ModelRequest& request = question.model;
  request.model = options.model;
  request.file = file;
  if (options.batch > 0) request.batch = options.batch;
  request.settings = std::move(settings);
  const Result<TrainingSetup> setup = parse_setup(options.setup);
  if (!setup) return setup.error();
  request.setup = *setup;
  request.default_optimizer = options.setup.optimizer.empty();
  Result<MemoryQuestion> memory = parse_memory(options.memory);
  if (!memory) return memory.error();
  question.memory = std::move(*memory);
  return question;
}

namespace {

constexpr size_t kSamplesOfPage = 2000;  // more than a screen has places for

Status write_prediction_html(const PredictOptions& options, const PredictRequest& question, const PredictAnswer& answer,
                             const CostModels& cost_models, const PredictFiles& files) {
  PredictRequest eager = question;
  eager.model.setup.compile = CompileMode::none;
  const auto ops = op_table(eager, built_anew(files.build_run), cost_models, CommandWork(options.limits).control());
  if (!ops) return ops.error();
  const PredictedLog& log = *answer.memory_log;
  const MemoryTimeline memory = thinned(memory_timeline(log.graph, log.log, ""), kSamplesOfPage);
  const std::string json = answer.compiled ? to_json(answer.prediction, *answer.compiled) : to_json(answer.prediction);
  return write_html(options.html, json, {{"memory", to_json(memory, answer.prediction)}, {"ops", to_json(*ops)}});
}

int predict_model(const PredictOptions& options, std::optional<FileKind> file, const CostModels& cost_models,
                  const PredictFiles& files) {
  auto settings = predict_settings(options);
  if (!settings) {
    fail(settings.error());
    return kUsage;
  }
  auto question = predict_request(options, file, std::move(*settings));
  if (!question) return fail(question.error());
  auto prices = asked_prices(options.prices, cost_models.devices);
  if (!prices) return fail(prices.error());
  question->prices = std::move(*prices);
  Result<PredictAnswer> answer = Error{"was not asked", "", ""};
  // While the iteration is derived, trees are unpacked that it is likely to ask.
  std::atomic<bool> derived = false;
  question->built = [&derived] { derived = true; };
  parallel_for(2, 2, [&](size_t part) {
    if (part == 0) {
      answer =
          predict_built(*question, built_anew(files.build_run), cost_models, CommandWork(options.limits).control());
      derived = true;  // or not at all
    } else if (cost_models.residual_model) {
      cost_models.residual_model->unpack_ahead([&derived] { return derived.load(); });
    }
  });
  if (!answer) return fail(answer.error());
  const Prediction& p = answer->prediction;
  if (options.memory_files.any()) {
    if (const Status status = write_memory_files(options.memory_files, *answer); !status.ok()) {
      return fail(status.error());
    }
  }
  if (options.html.asked()) {
    const Status status = write_prediction_html(options, *question, *answer, cost_models, files);
    if (!status.ok()) return fail(status.error());
  }
  const CompiledPrediction* compiled = answer->compiled ? &*answer->compiled : nullptr;
  if (!options.kernels.empty() && compiled != nullptr) {
    if (const Status status = write_whole_file(options.kernels, kernels_csv(*compiled)); !status.ok()) {
      return fail(status.error());
    }
  }
  if (options.csv) fmt::print("{}", csv_header());
  print_prediction(options, p, compiled);
  const Prediction& asked = compiled != nullptr ? compiled->prediction : p;
  return asked.memory_answer.verdict == FitVerdict::does_not_fit ? kDoesNotFit : kDone;
}

int run(const PredictOptions& options, const PredictFiles& files) {
  if (!options.with.empty()) return files.ask(options);
  if (options.op_trace.any() || !options.weights.empty()) {
    fail(Error{"the times of ops and weights are those of a learned predictor",
               "--op-csv, --op-svg, --op-chrome, --weights", "name one, as --with ets"});
    return kUsage;
  }
  Result<CostModels> cost_models = Error{"was not read", "", ""};
  Result<std::optional<FileKind>> file = std::optional<FileKind>();
  parallel_for(2, 2, [&](size_t part) {
    if (part == 0) cost_models = load_cost_models_for(options.machine, options.device_files);
    if (part == 1) file = files.kind(options.model);
  });
  if (!cost_models) return fail(cost_models.error());
  if (!file) return fail(file.error());
  if (*file == FileKind::records && options.setup.compile.empty()) return files.predict_records(options, *cost_models);
  return predict_model(options, *file, *cost_models, files);
}

}  // namespace

void add_predict_with(const PredictFiles& files, CLI::App& app, Run& chosen) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* verb = app.add_subcommand("predict", "Iteration time and memory of a model or of recorded runs");
  verb->add_option("MODEL", options->model,
                   "A name from `forerun zoo`, a Hugging Face config.json, an ONNX file, or a file of run records "
                   "(.jsonl, .gz, .zst)")
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
  add_job_options(*verb, options->job);
  add_price_options(*verb, options->prices);
  add_machine_option(*verb, options->machine);
  verb->add_option("--device-file", options->device_files, "JSON file with a further GPU; repeatable")
      ->allow_extra_args(false);
  verb->add_option(
          "--with", options->with,
          "Ask a learned predictor too: ets, dnnperf, birnn, arnn, mlp, gbdt or brp-nas; repeatable (forerun-lab)")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--weights", options->weights, "Folder of weights that `forerun train` wrote, for --with");
  verb->add_option("--op-csv", options->op_trace.csv, "With --with ets: time of each op, measured beside predicted");
  verb->add_option("--op-svg", options->op_trace.svg, "The same drawn over time");
  verb->add_option("--op-chrome", options->op_trace.chrome, "The same as a Chrome trace, for Perfetto");
  CLI::Option* compile = add_compile_option(*verb, options->setup);
  verb->add_option("--kernels", options->kernels,
                   "Write everything that the compiled iteration runs on the GPU, a CSV row each, in its order")
      ->needs(compile);
  verb->add_flag("--details", options->details,
                 "All there is to tell: costliest ops and modules, what lives at the peak, all assumptions");
  verb->add_flag("--brief", options->brief,
                 "Without what would take away a bound by the host, which takes further predictions");
  add_work_limits(*verb, options->limits);
  add_html_option(*verb, options->html);
  auto* json = verb->add_flag("--json", options->json, "One JSON object a run on standard output");
  verb->add_flag("--csv", options->csv, "One CSV row a run on standard output")->excludes(json)->excludes(compile);
  verb->footer(
      "Examples:\n"
      "  forerun predict resnet50 --batch 256 --precision amp_bf16 --channels-last\n"
      "  forerun predict vit_b_16 --gpu a100_80gb --set image=384 --optimizer adamw:impl=fused\n"
      "  forerun predict model.onnx --batch 32 --json\n"
      "  forerun predict resnet50 --machine machine.json   a machine that `python -m forerun.calibrate` has read\n"
      "  forerun predict resnet50 --epochs 90 --dataset-size 1.28M --price h200=3.5   hours, kWh and money\n"
      "  forerun predict gpt2_small --zero 3 --gpus 8 --memory-svg memory.svg\n"
      "  forerun predict resnet50 --html resnet50.html     the answer as a page: charts, tables, memory over time\n"
      "  forerun predict gpt2_small --batch 8 --compile    eager and under torch.compile, side by side\n"
      "  forerun predict runs.jsonl.gz --csv > predictions.csv\n"
      "  forerun predict resnet50 --with ets,dnnperf --op-svg trace.svg\n"
      "Exit code 3: the run (with --compile, the compiled one) does not fit in the GPU's memory. Where\n"
      "it may or may not (the range of such runs crosses the limit) the answer says so, with code 0.");
  verb->callback([options, files, &chosen] { chosen = [options, files] { return run(*options, files); }; });
}

}  // namespace forerun::cli
