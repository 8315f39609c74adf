// forerun predict MODEL --with PREDICTOR: what learned predictors say, beside Forerun. `forerun` hands the question over, since it
// is built without LibTorch.
#include "cli/predict_command.h"

#include <fmt/format.h>

#include "base/json_writer.h"
#include "base/output_file.h"
#include "lab/ask/ask.h"
#include "lab/ask/op_trace.h"
#include "lab/cli/answer.h"
#include "lab/cli/lab_verbs.h"
#include "lab/dataset/metrics.h"
#include "lab/training_data/learning_data.h"
#include "records/data_scan.h"
#include "report/prediction.h"
#include "report/table.h"

namespace forerun::cli {
namespace {

constexpr double kGiB = 1 << 30;

// One run with all that is said of it.
struct AskedRun {
  TrainingRun run;
  Prediction own;
  std::vector<LearnedAnswer> answers;  // in the order of the predictors
  std::vector<OpTime> measured;        // by op; empty: none
};

std::string error_of(const LearnedPredictor& predictor, learn::Target target) {
  const auto found = predictor.judged().find(target);
  return found == predictor.judged().end() ? "-" : percent(found->second);
}

std::string table_of(const AskedRun& asked, const std::vector<LearnedPredictor>& predictors) {
  Table table({"predictor", "iteration", "GPU busy", "peak allocated", "error of time", "of memory"});
  const auto ms = [](std::optional<double> value) {
    return value ? fmt::format("{:.2f} ms", *value) : std::string("-");
  };
  const auto gib = [](std::optional<double> value) {
    return value ? fmt::format("{:.2f} GiB", *value / kGiB) : std::string("-");
  };
  table.add({"forerun", ms(milliseconds(asked.own.times.iteration)), ms(milliseconds(asked.own.times.gpu_busy)),
             gib(static_cast<double>(asked.own.memory.peak_allocated.value)), "", ""});
  for (size_t i = 0; i < predictors.size(); ++i) {
    const learn::Prediction& said = asked.answers[i].prediction;
    table.add({predictors[i].name(), ms(said.iteration_ms), ms(said.gpu_busy_ms), gib(said.peak_bytes),
               error_of(predictors[i], learn::Target::iteration_ms),
               error_of(predictors[i], learn::Target::peak_bytes)});
  }
  std::string text =
      "\nAsked beside it (mean errors on model families, or GPUs, that were not trained on)\n" + table.text();
  for (const LearnedPredictor& predictor : predictors) {
    for (const std::string& source : predictor.trained_on())
      text += fmt::format("  {}: trained on {}\n", predictor.name(), source);
  }
  for (const LearnedAnswer& answer : asked.answers) {
    if (answer.based_on.empty()) continue;
    text += fmt::format("  {}: from {}\n", answer.predictor, answer.based_on);
    for (const std::string& note : answer.notes) text += fmt::format("  {}: {}\n", answer.predictor, note);
  }
  return text;
}

void write_answer(JsonWriter& json, const LearnedAnswer& answer, const LearnedPredictor& predictor) {
  json.begin_object().field("predictor", answer.predictor);
  const learn::Prediction& said = answer.prediction;
  if (said.iteration_ms) json.field("iter_ms", *said.iteration_ms);
  if (said.gpu_busy_ms) json.field("gpu_ms", *said.gpu_busy_ms);
  if (said.peak_bytes) json.field("peak_allocated", static_cast<int64_t>(*said.peak_bytes));
  json.key("judged_mre").begin_object();
  for (const auto& [target, error] : predictor.judged()) json.field(learn::name_of(target), error);
  json.end_object().field("trained_on", predictor.trained_on());
  if (!answer.based_on.empty()) json.field("based_on", answer.based_on);
  if (!answer.notes.empty()) json.field("notes", answer.notes);
  if (!said.op_us.empty()) {
    json.key("ops").begin_object().field("gpu_us", said.op_us).field("gap_us", said.gap_us).end_object();
  }
  json.end_object();
}

std::string json_of(const AskedRun& asked, const std::vector<LearnedPredictor>& predictors) {
  JsonWriter json;
  json.begin_object().field("schema", "forerun.predict/1");
  write_fields(json, asked.own);
  json.key("with").begin_array();
  for (size_t i = 0; i < predictors.size(); ++i) write_answer(json, asked.answers[i], predictors[i]);
  return json.end_array().end_object().take();
}

Status write_op_trace(const PredictOptions& options, const AskedRun& asked) {
  for (const LearnedAnswer& answer : asked.answers) {
    if (answer.prediction.op_us.empty()) continue;
    const OpTrace trace = op_trace(asked.run, answer.predictor, answer.prediction, asked.measured);
    const OpTraceFiles& files = options.op_trace;
    const std::pair<const std::string*, std::string (*)(const OpTrace&)> forms[] = {
        {&files.csv, to_csv}, {&files.svg, to_svg}, {&files.chrome, to_chrome}};
    for (const auto& [path, text] : forms) {
      if (path->empty()) continue;
      if (Status status = write_whole_file(*path, text(trace)); !status.ok()) return status;
    }
    return {};
  }
  return Error{"none of these predictors tells the times of ops", "--with", "ask ets"};
}

// All that is said of a run; what predictors say depends on its inputs alone, and on times of another GPU (`origin`).
Result<AskedRun> ask_all(TrainingRun run, std::vector<LearnedPredictor>& predictors, const CostModels& cost_models,
                         const MemoryQuestion& memory, const OriginTimes* origin = nullptr) {
  AskedRun asked;
  const auto device = cost_models.devices.find(run.environment.gpu);
  if (!device) return device.error();
  asked.own = predict(run, *device, cost_models, memory);
  for (LearnedPredictor& predictor : predictors) {
    auto answer = predictor.ask(run, cost_models, origin);
    if (!answer) return answer.error();
    asked.answers.push_back(std::move(*answer));
  }
  asked.run = std::move(run);
  return asked;
}

std::string ops_text(const AskedRun& asked) {
  for (const LearnedAnswer& answer : asked.answers) {
    if (!answer.prediction.op_us.empty())
      return to_text(op_trace(asked.run, answer.predictor, answer.prediction, asked.measured));
  }
  return "";
}

int ask_model(const PredictOptions& options, std::optional<FileKind> file, std::vector<LearnedPredictor>& predictors,
              const CostModels& cost_models) {
  auto settings = predict_settings(options);
  if (!settings) {
    fail(settings.error());
    return kUsage;
  }
  const auto question = predict_request(options, file, std::move(*settings));
  if (!question) return fail(question.error());
  const auto device = cost_models.devices.find(question->gpu.empty() ? std::string(kDefaultGpu) : question->gpu);
  if (!device) return fail(device.error());
  auto run = build_run(question->model, *device);
  if (!run) return fail(run.error());
  const auto asked = ask_all(std::move(*run), predictors, cost_models, question->memory);
  if (!asked) return fail(asked.error());
  if (options.op_trace.any()) {
    if (const Status status = write_op_trace(options, *asked); !status.ok()) return fail(status.error());
  }
  if (options.json) {
    fmt::print("{}\n", json_of(*asked, predictors));
  } else {
    fmt::print("{}{}{}", to_text(asked->own), table_of(*asked, predictors), ops_text(*asked));
  }
  return asked->own.memory_answer.verdict == FitVerdict::does_not_fit ? kDoesNotFit : kDone;
}

// By op, gaps scaled to an iteration that is not profiled, as predictors are trained on them; empty where there is nothing.
std::vector<OpTime> measured_ops_of(const RunRecord& record) {
  std::vector<OpTime> times;
  learn::DataSet data;
  const learn::Targets measured = example_of(record, data).targets;
  if (measured.op_us.size() != record.run.graph.op_count()) return times;
  for (size_t i = 0; i < measured.op_us.size(); ++i) {
    times.push_back({.gpu_us = measured.op_us[i], .gap_us = i < measured.gap_us.size() ? measured.gap_us[i] : 0.0});
  }
  return times;
}

// Each run of a file; of a file with one run its ops too.
int ask_records(const PredictOptions& options, std::vector<LearnedPredictor>& predictors,
                const CostModels& cost_models) {
  std::vector<AskedRun> all;
  int64_t bad = 0;
  const auto tell_bad = [&](const Error& error) {
    ++bad;
    tell_error(error);
  };
  const auto take = [&](const RunRecord& record, const DataPlace& /*place*/) {
    const auto device = cost_models.devices.find(options.gpu.empty() ? record.run.environment.gpu : options.gpu);
    if (!device) return tell_bad(device.error().within(record.run.id));
    auto run = recorded_run(record, *device);
    if (!run) return tell_bad(run.error().within(record.run.id));
    run->environment.gpu = device->name;
    const std::vector<OpTime> measured = measured_ops_of(record);
    OriginTimes origin{.gpu = record.run.environment.gpu, .op_us = {}};
    for (const OpTime& time : measured) origin.op_us.push_back(static_cast<float>(time.gpu_us));
    auto asked = ask_all(std::move(*run), predictors, cost_models, {}, &origin);
    if (!asked) return tell_bad(asked.error().within(record.run.id));
    // Times of ops stand beside those of the GPU that they were measured on.
    if (asked->run.environment.gpu == record.run.environment.gpu) asked->measured = measured;
    if (options.json) fmt::print("{}\n", json_of(*asked, predictors));
    all.push_back(std::move(*asked));
  };
  const Status status = scan_files(
      {options.model}, Fields::everything,
      {.run = take, .sample = {}, .problem = [&](const DataProblem& problem) { tell_bad(problem.error()); }});
  if (!status.ok()) return fail(status.error());
  if (options.op_trace.any()) {
    if (all.size() != 1) {
      fail(Error{"the times of ops are those of one run", options.model, "name a file with one record"});
      return kUsage;
    }
    if (const Status written = write_op_trace(options, all.front()); !written.ok()) return fail(written.error());
  }
  if (!options.json) {
    std::vector<std::string> heading = {"id", "forerun ms"};
    for (const LearnedPredictor& predictor : predictors)
      heading.insert(heading.end(), {predictor.name() + " ms", "GiB"});
    Table table(heading);
    for (const AskedRun& asked : all) {
      std::vector<std::string> cells = {asked.run.id, fmt::format("{:.2f}", milliseconds(asked.own.times.iteration))};
      for (const LearnedAnswer& answer : asked.answers) {
        const learn::Prediction& said = answer.prediction;
        cells.push_back(said.iteration_ms ? fmt::format("{:.2f}", *said.iteration_ms) : "-");
        cells.push_back(said.peak_bytes ? fmt::format("{:.2f}", *said.peak_bytes / kGiB) : "-");
      }
      table.add(std::move(cells));
    }
    fmt::print("{}", table.text(""));
    if (all.size() == 1) fmt::print("{}", ops_text(all.front()));
  }
  return bad > 0 ? kInputAtFault : kDone;
}

int ask(const PredictOptions& options) {
  if (options.csv) {
    fail(Error{"--csv and --with do not go together", "--csv", "ask for --json"});
    return kUsage;
  }
  if (!options.weights.empty() && options.with.size() != 1) {
    fail(Error{"weights are those of one predictor", "--weights", "give --with once"});
    return kUsage;
  }
  std::vector<LearnedPredictor> predictors;
  for (const std::string& name : options.with) {
    auto loaded = LearnedPredictor::load(name, options.weights);
    if (!loaded) return fail(loaded.error());
    predictors.push_back(std::move(*loaded));
  }
  const auto cost_models = load_cost_models(options.device_files);
  if (!cost_models) return fail(cost_models.error());
  const auto file = model_file(options.model, "predict");
  if (!file) return fail(file.error());
  if (*file == FileKind::records) return ask_records(options, predictors, *cost_models);
  return ask_model(options, *file, predictors, *cost_models);
}

int ask_own(const PredictOptions& /*options*/, const CostModels& /*cost_models*/) {
  fail(Error{"no predictor is named", "--with", "without one, ask `forerun predict`"});
  return kUsage;
}

}  // namespace

void add_lab_predict(CLI::App& app, Run& chosen) {
  add_predict_with({.kind = [](const std::string& model) { return model_file(model, "predict"); },
                    .build_run = build_run,
                    .predict_records = ask_own,
                    .ask = ask},
                   app, chosen);
}

}  // namespace forerun::cli
