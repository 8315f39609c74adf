// predict, and what a prediction has too many rows of to be told with it: its ops, and its memory over time.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/op_table.h"
#include "ask/answers.h"
#include "ask/predictions.h"
#include "ask/run_words.h"
#include "memory/memory_timeline.h"
#include "report/prediction.h"
#include "report/prediction_compiled.h"
#include "report/prediction_series.h"

namespace forerun::ask {
namespace {

struct PredictWords {
  ModelWords model;
  std::string gpu;
  std::vector<std::string> device_files;
  std::string machine;
  MemoryText memory;
  JobLength job;
  PriceWords prices;
  bool brief = false;  // without remedies that take further predictions
  WorkControl control;
};

PredictWords read_predict(Question& question, const Asking& asking) {
  return {.model = read_model(question),
          .gpu = question.text("gpu"),
          .device_files = question.texts("device_files"),
          .machine = question.text("machine"),
          .memory = read_memory(question),
          .job = read_job(question),
          .prices = read_prices(question),
          .brief = question.flag("brief"),
          .control = read_limits(question, asking.control)};
}

constexpr size_t kShort = 5000;  // ops of an iteration: predicted in some milliseconds

// The runs of a file of records, predicted as they were recorded.
Result<std::vector<Prediction>> predict_file(const PredictWords& words, MemoryQuestion memory, Prices prices,
                                             const CostModels& cost_models) {
  if (words.model.setup.any()) {
    return Error{"a recorded run is predicted as it was recorded, with its precision, optimizer, layout and loop",
                 fmt::format("{}", fmt::join(words.model.setup.given(), ", ")),
                 "capture the model again as it shall be trained, or name a model"};
  }
  KeyValues settings = words.model.settings;
  if (words.model.batch) settings.emplace_back("batch", fmt::format("{}", *words.model.batch));
  const Result<RecordSizes> sizes = record_sizes(settings);
  if (!sizes) return sizes.error();
  std::optional<Error> bad;
  const RecordHandlers handlers{.prediction = {}, .bad_record = [&](const Error& error) {
                                  if (!bad) bad = error;
                                }};
  auto answer = predict_records({.file = words.model.model,
                                 .gpu = words.gpu,
                                 .sizes = *sizes,
                                 .memory = std::move(memory),
                                 .job = words.job,
                                 .prices = std::move(prices)},
                                cost_models, handlers, words.control);
  if (!answer) return answer.error();
  if (bad) return *bad;
  return std::move(answer->predictions);
}

Result<PredictRequest> predict_request(const PredictWords& words, const CostModels& cost_models) {
  PredictRequest request{.gpu = words.gpu, .job = words.job, .remedies = !words.brief};
  Result<ModelRequest> model = model_request(words.model, "predict");
  if (!model) return model.error();
  request.model = std::move(*model);
  Result<MemoryQuestion> memory = parse_memory(words.memory);
  if (!memory) return memory.error();
  request.memory = std::move(*memory);
  Result<Prices> prices = asked_prices(words.prices.file, words.prices.given, cost_models.devices);
  if (!prices) return prices.error();
  request.prices = std::move(*prices);
  return request;
}

// A question that was read: what it says, what answers it, and the request that they make.
struct Asked {
  PredictWords words;
  std::shared_ptr<const CostModels> models;
  RunSource runs;
  PredictRequest request;

  [[nodiscard]] Result<PredictAnswer> answer() const { return predict_built(request, runs, *models, words.control); }
};

Result<Asked> asked_of(Question& question, const Asking& asking) {
  PredictWords words = read_predict(question, asking);
  if (const Status status = question.status(); !status.ok()) return status.error();
  auto models = asking.knowledge.with(words.device_files, words.machine);
  if (!models) return models.error();
  Result<PredictRequest> request = predict_request(words, **models);
  if (!request) return request.error();
  if (asking.beside_others) request->most_ops_on_one_thread = kShort;
  return Asked{std::move(words), std::move(*models), asking.knowledge.runs().source(), std::move(*request)};
}

// A timeline has a sample for every allocation; a chart or a table needs as many as it has places.
constexpr size_t kMostSamples = 200'000;

// One, or those of a file of records; a compiled model is answered as that alone.
Result<std::vector<Prediction>> predictions_of(Result<Asked> asked) {
  if (!asked) return asked.error();
  asked->request.eager_beside = false;
  if (asked->request.model.file == FileKind::records && asked->words.model.setup.compile.empty()) {
    return predict_file(asked->words, std::move(asked->request.memory), std::move(asked->request.prices),
                        *asked->models);
  }
  Result<PredictAnswer> answer = asked->answer();
  if (!answer) return answer.error();
  return std::vector{std::move(answer->prediction)};
}

}  // namespace

Result<std::vector<Prediction>> predictions(Question& question, const Asking& asking) {
  return predictions_of(asked_of(question, asking));
}

Result<std::string> answer_predict(Question& question, const Asking& asking) {
  Result<Asked> asked = asked_of(question, asking);
  if (asked && asked->request.model.setup.compile != CompileMode::none) {
    const Result<PredictAnswer> answer = asked->answer();
    if (!answer) return answer.error();
    return to_json(answer->prediction, *answer->compiled);
  }
  const auto predicted = predictions_of(std::move(asked));
  if (!predicted) return predicted.error();
  std::string lines;
  for (const Prediction& prediction : *predicted) lines += (lines.empty() ? "" : "\n") + to_json(prediction);
  return lines;
}

Result<std::string> answer_ops(Question& question, const Asking& asking) {
  Result<Asked> asked = asked_of(question, asking);
  if (!asked) return asked.error();
  const Result<std::vector<PredictedOp>> rows =
      op_table(asked->request, asked->runs, *asked->models, asked->words.control);
  if (!rows) return rows.error();
  return to_json(*rows);
}

Result<std::string> answer_memory(Question& question, const Asking& asking) {
  Result<Asked> asked = asked_of(question, asking);
  if (!asked) return asked.error();
  asked->request.memory_log = true;
  asked->request.remedies = false;
  asked->request.eager_beside = false;
  const Result<PredictAnswer> answer = asked->answer();
  if (!answer) return answer.error();
  const PredictedLog& log = *answer->memory_log;
  const MemoryTimeline timeline = memory_timeline(log.graph, log.log, "");
  if (timeline.samples.size() > kMostSamples) {
    return Error{fmt::format("memory changes {} times in an iteration", timeline.samples.size()),
                 asked->words.model.model, "`forerun predict MODEL --memory-svg FILE` draws it"};
  }
  return to_json(timeline, answer->prediction);
}

}  // namespace forerun::ask
