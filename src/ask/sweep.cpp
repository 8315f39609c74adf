// Many configurations: a row each, in columns; `over` has the axes, {"batch": [8, 16], "gpu": ["l4", "h100"]}. `shard`, "2/8", asks
// for some of them (base/shard.h), with how many there are in all and who predicted them, for whoever puts shards together.
#include "api/sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "ask/answers.h"
#include "ask/run_words.h"
#include "guard/models_version.h"
#include "report/columns.h"

namespace forerun::ask {
namespace {

constexpr size_t kMostRows = 1'000'000;

// What is kept of a configuration.
struct SweptRow {
  std::vector<std::string> values;
  std::string error;  // why nothing could be predicted; empty: all else is known
  std::string id, gpu, precision, optimizer, bound, verdict;
  int64_t batch = 0, parameters = 0, allocated = 0, reserved = 0;
  double iteration_ms = 0, low_ms = 0, high_ms = 0, gpu_ms = 0, host_ms = 0, samples = 0, tokens = 0;
  std::optional<double> hours, energy, cost;
};

SweptRow row_of(const std::vector<std::string>& values, const Result<Prediction>& prediction) {
  SweptRow row{.values = values, .error = prediction ? "" : prediction.error().message()};
  if (!prediction) return row;
  const Prediction& p = *prediction;
  row.id = p.id;
  row.gpu = p.gpu;
  row.precision = name_of(p.setup.precision);
  row.optimizer = name_of(p.setup.optimizer.kind);
  row.bound = name_of(p.times.bound);
  row.verdict = name_of(p.memory_answer.verdict);
  row.batch = p.input.batch;
  row.parameters = p.parameters;
  row.allocated = p.memory.peak_allocated.value;
  row.reserved = p.memory.peak_reserved.value;
  row.iteration_ms = milliseconds(p.times.iteration);
  row.low_ms = milliseconds(p.p10);
  row.high_ms = milliseconds(p.p90);
  row.gpu_ms = milliseconds(p.times.gpu_busy);
  row.host_ms = milliseconds(p.times.host_busy);
  row.samples = p.samples_per_second;
  row.tokens = p.tokens_per_second;
  if (!p.job) return row;
  row.hours = p.job->hours;
  if (p.job->energy) row.energy = p.job->energy->expected;
  if (const auto cost = p.job->cost()) row.cost = cost->expected;
  return row;
}

template <class Value>
auto known(Value SweptRow::*field) {
  return [field](const SweptRow& row) { return row.error.empty() ? std::optional(row.*field) : std::nullopt; };
}
auto maybe(std::optional<double> SweptRow::*field) {
  return [field](const SweptRow& row) { return row.*field; };
}

// What a shard tells beside its rows.
struct ShardNote {
  size_t cases = 0;  // in all shards
  std::string predicted_by;
};

std::string in_columns(const std::vector<SweepAxis>& axes, const std::vector<SweptRow>& rows,
                       const std::optional<ShardNote>& shard) {
  JsonWriter json;
  json.begin_object().field("schema", "forerun.sweep.columns/1");
  if (shard) json.field("cases", shard->cases).field("predicted_by", shard->predicted_by);
  json.key("axes").begin_array();
  for (const SweepAxis& axis : axes) json.value(axis.name);
  json.end_array().key("over").begin_object();
  for (size_t i = 0; i < axes.size(); ++i)
    column(json, axes[i].name, rows, [i](const SweptRow& row) { return row.values[i]; });
  json.end_object().key("columns").begin_object();
  column(json, "id", rows, known(&SweptRow::id));
  column(json, "gpu", rows, known(&SweptRow::gpu));
  column(json, "batch", rows, known(&SweptRow::batch));
  column(json, "precision", rows, known(&SweptRow::precision));
  column(json, "optimizer", rows, known(&SweptRow::optimizer));
  column(json, "iteration_ms", rows, known(&SweptRow::iteration_ms));
  column(json, "low_ms", rows, known(&SweptRow::low_ms));
  column(json, "high_ms", rows, known(&SweptRow::high_ms));
  column(json, "gpu_ms", rows, known(&SweptRow::gpu_ms));
  column(json, "host_ms", rows, known(&SweptRow::host_ms));
  column(json, "bound", rows, known(&SweptRow::bound));
  column(json, "samples_per_second", rows, known(&SweptRow::samples));
  column(json, "tokens_per_second", rows, known(&SweptRow::tokens));
  column(json, "params", rows, known(&SweptRow::parameters));
  column(json, "peak_allocated", rows, known(&SweptRow::allocated));
  column(json, "peak_reserved", rows, known(&SweptRow::reserved));
  column(json, "fits", rows, [](const SweptRow& row) {
    return row.error.empty() ? std::optional(row.verdict == name_of(FitVerdict::fits)) : std::nullopt;
  });
  column(json, "verdict", rows, known(&SweptRow::verdict));
  column(json, "hours", rows, maybe(&SweptRow::hours));
  column(json, "energy_kwh", rows, maybe(&SweptRow::energy));
  column(json, "cost", rows, maybe(&SweptRow::cost));
  column(json, "error", rows,
         [](const SweptRow& row) { return row.error.empty() ? std::nullopt : std::optional(row.error); });
  return json.end_object().end_object().take();
}

// The words that are given beside the axes, by the name of the axis that would give them too.
std::vector<std::string> given_words(const ModelWords& words, const std::string& gpu) {
  std::vector<std::string> given;
  const auto note = [&](bool there, const char* name) {
    if (there) given.emplace_back(name);
  };
  note(!words.model.empty(), "model");
  note(!gpu.empty(), "gpu");
  note(words.batch.has_value(), "batch");
  note(!words.setup.precision.empty(), "precision");
  note(!words.setup.optimizer.empty(), "optimizer");
  note(!words.setup.checkpoint.empty(), "checkpoint");
  note(!words.setup.lora.empty(), "lora");
  note(!words.setup.quantize.empty(), "quantize");
  note(words.setup.accumulate != 1, "accumulate");
  note(words.setup.channels_last, "channels_last");
  for (const KeyValue& setting : words.settings) given.push_back(setting.first);
  return given;
}

}  // namespace

Result<std::string> answer_sweep(Question& question, const Asking& asking) {
  const ModelWords words = read_model(question, /*optional=*/true);
  SweepRequest request{.gpu = question.text("gpu")};
  const PriceWords price_words = read_prices(question);
  request.job = read_job(question);
  const unsigned threads = read_threads(question);
  const std::string shard_text = question.text("shard");
  const WorkControl control = read_limits(question, asking.control);
  const std::vector<std::string> given = given_words(words, request.gpu);
  for (auto& [name, values] : question.lists("over")) {
    if (std::find(given.begin(), given.end(), name) != given.end()) {
      question.refuse("over", name + " is given as an axis and beside the axes", "give it in one of them");
    }
    request.axes.push_back({name, std::move(values)});
  }
  const std::string machine = question.text("machine");
  if (request.axes.empty()) question.refuse("over", "there is nothing to go through", "give an axis, as batch");
  if (const Status status = question.status(); !status.ok()) return status.error();
  const Result<Shard> shard = shard_text.empty() ? Result<Shard>(Shard{}) : parse_shard(shard_text);
  if (!shard) return shard.error();
  Result<ModelRequest> model = model_request(words, "sweep");
  if (!model) return model.error();
  request.base = std::move(*model);
  const auto models = asking.knowledge.with({}, machine);
  if (!models) return models.error();
  Result<Prices> prices = asked_prices(price_words.file, price_words.given, (*models)->devices);
  if (!prices) return prices.error();
  request.prices = std::move(*prices);
  const Result<size_t> count = product_size(request.axes);
  if (!count) return count.error();
  if (*count > kMostRows) {
    return Error{fmt::format("{} configurations are more than one answer has room for", *count), "over",
                 "`forerun sweep --csv` prints as many as ten million"};
  }
  const auto cases = sweep_cases(request, **models);
  if (!cases) return cases.error();
  std::vector<SweptRow> rows;
  rows.reserve(shard->cases_of(cases->size()));
  const auto take = [&](const SweepCase& one, const Result<Prediction>& prediction) {
    rows.push_back(row_of(one.values, prediction));
  };
  if (const Status status = sweep(*cases, **models, threads, take, control, *shard); !status.ok())
    return status.error();
  if (shard_text.empty()) return in_columns(request.axes, rows, std::nullopt);
  Result<std::string> version = guard::models_version();
  if (!version) return version.error();
  return in_columns(request.axes, rows, ShardNote{cases->size(), std::move(*version)});
}

}  // namespace forerun::ask
