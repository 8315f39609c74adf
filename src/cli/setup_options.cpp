#include "cli/setup_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/nearest.h"
#include "base/options_text.h"

namespace forerun::cli {
namespace {

Error unknown(std::string_view kind, const std::string& given, const std::vector<std::string>& known) {
  return {fmt::format("there is no {} '{}'", kind, given), "", did_you_mean(given, known)};
}

// NAME[:key=value,...]
Result<OptimizerSpec> parse_optimizer(const std::string& text) {
  const OptionGrammar grammar{"--optimizer", "write NAME[:key=value,...], for instance sgd:momentum=0.9,impl=fused"};
  const auto named = parse_named_options(text, grammar);
  if (!named) return named.error();
  OptimizerSpec spec;
  if (named->name == "momentum") {
    spec.momentum = 0.9;
  } else if (const auto kind = optimizer_named(named->name); kind && *kind != OptimizerKind::other) {
    spec.kind = *kind;
  } else {
    return unknown("optimizer", named->name, {"sgd", "momentum", "adam", "adamw", "rmsprop", "adagrad"});
  }
  OptionReader reader(named->options, {"--optimizer " + text, grammar.remedy});
  constexpr double kMost = std::numeric_limits<double>::max();
  const std::vector<OptimizerImpl> impls = {OptimizerImpl::forloop, OptimizerImpl::foreach, OptimizerImpl::fused};
  std::vector<std::string> words;
  for (const OptimizerImpl impl : impls) words.emplace_back(name_of(impl));
  const auto own = static_cast<size_t>(std::find(impls.begin(), impls.end(), spec.impl) - impls.begin());
  spec.impl = impls[reader.word("impl", own, words)];
  spec.momentum = reader.number("momentum", spec.momentum, 0, kMost);
  spec.weight_decay = reader.number("weight_decay", spec.weight_decay, 0, kMost);
  spec.learning_rate = reader.number("lr", spec.learning_rate, 0, kMost);
  if (const Status status = reader.status(); !status) return status.error();
  if (spec.kind == OptimizerKind::rmsprop && spec.impl == OptimizerImpl::fused) {
    return Error{"RMSprop has no fused implementation", "--optimizer", "use impl=foreach or impl=forloop"};
  }
  return spec;
}

}  // namespace

Result<Settings> parse_settings(const std::vector<std::string>& texts, const Settings& taken) {
  const OptionGrammar grammar{"--set", "write KEY=VALUE, for instance image=384"};
  Settings settings;
  for (const std::string& text : texts) {
    Result<KeyValue> setting = parse_key_value(text, grammar);
    if (!setting) return setting.error();
    const auto same = [&](const KeyValue& other) { return other.first == setting->first; };
    if (const auto other = std::find_if(taken.begin(), taken.end(), same); other != taken.end()) {
      return Error{fmt::format("{} is given by {} and by --set {}", setting->first, other->second, text), "--set",
                   "give it in one of them"};
    }
    if (Status status = add_once(std::move(*setting), settings, grammar); !status) return status.error();
  }
  return settings;
}

void add_setup_options(CLI::App& verb, SetupOptions& options, const std::string& default_precision) {
  verb.add_option("--precision", options.precision,
                  "fp32 (PyTorch's defaults), tf32 (also for matrix products) or amp_bf16 (autocast); default " +
                      default_precision);
  verb.add_option(
      "--optimizer", options.optimizer,
      "NAME[:key=value,...]: sgd, momentum, adam, adamw, rmsprop, adagrad; keys impl (forloop, foreach, fused), "
      "momentum, weight_decay, lr; default momentum for images, adamw for tokens");
  verb.add_flag("--channels-last", options.channels_last, "Images and weights in channels-last layout");
}

Result<TrainingSetup> parse_setup(const SetupOptions& options) {
  TrainingSetup setup;
  setup.channels_last = options.channels_last;
  if (!options.precision.empty()) {
    const Result<Precision> precision = parse_precision(options.precision);
    if (!precision) return precision.error();
    setup.precision = *precision;
  }
  if (!options.optimizer.empty()) {
    const Result<OptimizerSpec> optimizer = parse_optimizer(options.optimizer);
    if (!optimizer) return optimizer.error();
    setup.optimizer = *optimizer;
  }
  return setup;
}

}  // namespace forerun::cli
