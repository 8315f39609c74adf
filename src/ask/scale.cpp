// The step of many GPUs. `gpu` is a name, or kinds with numbers, {"h200": 8, "a100": 8}; `gpus` a number or several.
#include "api/scale.h"

#include "api/mixed_scale.h"
#include "ask/answers.h"
#include "ask/run_words.h"
#include "report/scale.h"

namespace forerun::ask {
namespace {

// {"h200": 8, "a100": 4} as the option has it, "h200=8,a100=4".
std::string joined(const KeyValues& kinds) {
  std::string text;
  for (const KeyValue& kind : kinds) text += (text.empty() ? "" : ",") + kind.first + "=" + kind.second;
  return text;
}

}  // namespace

Result<std::string> answer_scale(Question& question, const Asking& asking) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const ModelWords words = read_model(question);
  if (words.batch) question.refuse("batch", "says nothing here", "give micro_batch, global_batch or both");
  const PriceWords price_words = read_prices(question);
  ScaleQuestion asked;
  asked.model = words.model;
  asked.settings = words.settings;
  const KeyValues kinds = question.settings("kinds");
  const KeyValues networks = question.settings("networks");
  if (const std::string gpu = question.text("gpu"); !gpu.empty()) asked.gpu = gpu;
  if (const std::string network = question.text("network"); !network.empty()) asked.network = network;
  if (const auto gpus = question.wholes("gpus", 1, int64_t{1} << 30); !gpus.empty()) asked.gpus = gpus;
  asked.node = question.whole("node", 1, 1 << 20).value_or(asked.node);
  asked.within = question.text("within");
  const std::string strategy = question.text("strategy");
  if (!strategy.empty()) asked.strategy = strategy;
  asked.search = question.flag("search");
  asked.explain = question.text("explain");
  asked.oversubscription = question.number("oversubscription", 1, 1000).value_or(1);
  asked.global_batch = question.whole("global_batch", 1, kMost).value_or(0);
  asked.micro_batch = question.whole("micro_batch", 1, kMost).value_or(0);
  asked.job = read_job(question);
  asked.risks.mttf_hours = question.number("mttf", 1, 1e12);
  asked.risks.restart_minutes = question.number("restart", 0, 1e5);
  if (const auto rate = question.number("storage", 1e-3, 1e9)) asked.risks.storage_rate = *rate * 1e9;
  asked.risks.spread = question.number("spread", 0, 50).value_or(0) / 100;
  asked.efficiency = question.text("efficiency");
  const std::string batches = question.text("batches");
  const std::string stack = question.text("stack");
  if (!stack.empty()) asked.megatron = stack == "megatron";
  if (!stack.empty() && stack != "pytorch" && stack != "megatron") {
    question.refuse("stack", "cannot be '" + stack + "'", "give pytorch or megatron");
  }
  const WorkControl control = read_limits(question, asking.control);
  if (!kinds.empty()) {
    if (question.has("gpu") || question.has("gpus")) {
      question.refuse("kinds", "tells already which GPUs there are and how many", "leave out gpu and gpus");
    }
    if (asked.oversubscription > 1) {
      question.refuse("oversubscription", "is told of GPUs of one kind", "leave it out");
    }
    if (asked.risks.any()) {
      question.refuse("mttf, restart, storage, spread", "are told of plans on GPUs of one kind", "leave them out");
    }
    if (!price_words.file.empty() || !price_words.given.empty()) {
      question.refuse("price", "makes the cost of a plan on GPUs of one kind", "name one kind of GPU");
    }
    asked.gpu = joined(kinds);
    if (!networks.empty()) asked.network = joined(networks);
  } else if (!batches.empty() || !networks.empty()) {
    question.refuse("batches, networks", "are those of several kinds of GPU", "name them, as kinds");
  }
  if (kinds.empty() && names_kinds(asked.gpu)) question.refuse("gpu", "names several kinds", "give them as kinds");
  const std::string machine = question.text("machine");
  if (!batches.empty() && batches != "even" && batches != "by-speed") {
    question.refuse("batches", "cannot be '" + batches + "'", "give even or by-speed");
  }
  if (const Status status = question.status(); !status.ok()) return status.error();
  asked.default_precision = words.setup.precision.empty();
  asked.default_optimizer = words.setup.optimizer.empty();
  const Result<TrainingSetup> setup = parse_setup(words.setup);
  if (!setup) return setup.error();
  asked.setup = *setup;
  asked.plain_attention = setup->attention == Attention::eager;
  const auto models = asking.knowledge.with({}, machine);
  if (!models) return models.error();
  if (!kinds.empty()) {
    const auto share = batches == "by-speed" ? BatchShare::by_speed : BatchShare::even;
    const auto mixed = scale_out_mixed(asked, share, **models, control);
    return mixed ? Result<std::string>(to_json(*mixed)) : mixed.error();
  }
  Result<Prices> prices = asked_prices(price_words.file, price_words.given, (*models)->devices);
  if (!prices) return prices.error();
  asked.prices = std::move(*prices);
  const auto answer = scale_out(asked, **models, control);
  return answer ? Result<std::string>(to_json(*answer)) : answer.error();
}

}  // namespace forerun::ask
