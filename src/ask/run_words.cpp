#include "ask/run_words.h"

#include <fmt/format.h>

#include <limits>

namespace forerun::ask {
namespace {

constexpr int64_t kMostBatch = int64_t{1} << 30;
constexpr const char* kModelRemedy =
    "a name of the zoo, a Hugging Face config.json, an ONNX file, or a capture; `forerun zoo` lists names";

SetupText read_setup(Question& question) {
  SetupText text;
  text.precision = question.text("precision");
  text.optimizer = question.text("optimizer");
  text.channels_last = question.flag("channels_last");
  text.checkpoint = question.text("checkpoint");
  text.accumulate = question.whole("accumulate", 1, kMostAccumulated).value_or(1);
  text.lora = question.word("lora");
  text.freeze = question.texts("freeze");
  text.quantize = question.text("quantize");
  text.clip_norm = question.number("clip_grad", 0, std::numeric_limits<double>::max());
  text.loop = question.text("loop");
  text.attention = question.text("attention");
  text.compile = question.text("compile");
  text.ema = question.flag("ema");
  return text;
}

}  // namespace

ModelWords read_model(Question& question, bool optional) {
  ModelWords words;
  words.model = optional ? question.text("model") : question.needed("model", kModelRemedy);
  words.batch = question.whole("batch", 1, kMostBatch);
  words.settings = question.settings("set");
  if (words.batch) {
    for (const KeyValue& setting : words.settings) {
      if (setting.first == "batch") question.refuse("set", "batch is given twice", "give it once");
    }
  }
  words.setup = read_setup(question);
  return words;
}

Result<ModelRequest> model_request(const ModelWords& words, std::string_view verb) {
  ModelRequest request;
  request.model = words.model;
  if (!words.model.empty()) {
    const auto file = model_file(words.model, verb);
    if (!file) return file.error();
    request.file = *file;
  }
  request.batch = words.batch;
  request.settings = words.settings;
  const Result<TrainingSetup> setup = parse_setup(words.setup);
  if (!setup) return setup.error();
  request.setup = *setup;
  request.default_optimizer = words.setup.optimizer.empty();
  return request;
}

MemoryText read_memory(Question& question) {
  MemoryText text;
  text.allocator = question.text("allocator");
  text.ddp = question.flag("ddp");
  text.bucket_views = question.flag("bucket_view");
  text.zero = static_cast<int>(question.whole("zero", 0, 3).value_or(0));
  text.gpus = question.whole("gpus", 2, int64_t{1} << 20).value_or(0);
  return text;
}

JobLength read_job(Question& question) {
  JobLength length;
  length.iterations = question.count("iterations", JobLength::kMost).value_or(0);
  length.samples = question.count("samples", JobLength::kMost).value_or(0);
  length.tokens = question.count("tokens", JobLength::kMost).value_or(0);
  length.epochs = question.number("epochs", 1e-6, 1e9).value_or(0);
  length.dataset_size = question.count("dataset_size", JobLength::kMost).value_or(0);
  if ((length.epochs > 0) != (length.dataset_size > 0)) {
    question.refuse("epochs, dataset_size", "passes over a data set take its size, and its size alone says nothing",
                    "give both");
  }
  return length;
}

PriceWords read_prices(Question& question) {
  PriceWords words;
  words.file = question.text("prices");
  for (const auto& [gpu, price] : question.settings("price")) words.given.push_back(gpu + "=" + price);
  return words;
}

unsigned read_threads(Question& question) {
  return static_cast<unsigned>(question.whole("threads", 0, 1024).value_or(0));
}

WorkControl read_limits(Question& question, const WorkControl& control) {
  WorkControl limited = control;
  const double seconds = question.number("time_limit", 1e-3, 1e9).value_or(0);
  Bytes memory;
  if (const std::string text = question.text("memory_limit"); !text.empty()) {
    const auto size = size_in(text);
    if (!size || size->value == 0) {
      question.refuse("memory_limit", "'" + text + "' is no size", "write 512MiB or 2GiB");
    } else {
      memory = *size;
    }
  }
  if (seconds > 0 || memory.value > 0) limited.budget = Budget::of(seconds, memory);
  return limited;
}

}  // namespace forerun::ask
