#include "predict/setup_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/nearest.h"
#include "base/options_text.h"

namespace forerun {
namespace {

Error unknown_optimizer(const std::string& given) {
  const std::vector<std::string> known = {"sgd", "momentum", "adam", "adamw", "rmsprop", "adagrad"};
  return {fmt::format("there is no optimizer '{}'", given), "", did_you_mean(given, known)};
}

}  // namespace

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
    return unknown_optimizer(named->name);
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

Result<TrainingSetup> parse_setup(const SetupText& text) {
  TrainingSetup setup;
  setup.channels_last = text.channels_last;
  if (!text.precision.empty()) {
    const Result<Precision> precision = parse_precision(text.precision);
    if (!precision) return precision.error();
    setup.precision = *precision;
  }
  if (!text.optimizer.empty()) {
    const Result<OptimizerSpec> optimizer = parse_optimizer(text.optimizer);
    if (!optimizer) return optimizer.error();
    setup.optimizer = *optimizer;
  }
  return setup;
}

}  // namespace forerun
