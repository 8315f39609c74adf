#include "cli/setup_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/nearest.h"

namespace forerun::cli {
namespace {

Error unknown(std::string_view kind, const std::string& given, const std::vector<std::string>& known) {
  return {fmt::format("there is no {} '{}'", kind, given), "", did_you_mean(given, known)};
}

Result<double> parse_number(const std::string& key, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value) || value < 0) {
    return Error{fmt::format("{} cannot be '{}'", key, text), "--optimizer", "give a number from 0"};
  }
  return value;
}

Status apply(const std::string& key, const std::string& value, OptimizerSpec& spec) {
  if (key == "impl") {
    const auto impl = optimizer_impl_named(value);
    if (!impl) return unknown("optimizer implementation", value, {"forloop", "foreach", "fused"});
    spec.impl = *impl;
    return {};
  }
  double* target = key == "momentum"       ? &spec.momentum
                   : key == "weight_decay" ? &spec.weight_decay
                   : key == "lr"           ? &spec.learning_rate
                                           : nullptr;
  if (target == nullptr) return unknown("optimizer setting", key, {"impl", "momentum", "weight_decay", "lr"});
  const Result<double> number = parse_number(key, value);
  if (!number) return number.error();
  *target = *number;
  return {};
}

// NAME[:key=value,...]
Result<OptimizerSpec> parse_optimizer(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  OptimizerSpec spec;
  if (name == "momentum") {
    spec.momentum = 0.9;
  } else if (const auto kind = optimizer_named(name); kind && *kind != OptimizerKind::other) {
    spec.kind = *kind;
  } else {
    return unknown("optimizer", name, {"sgd", "momentum", "adam", "adamw", "rmsprop", "adagrad"});
  }
  std::set<std::string> given;
  for (size_t at = colon; at != std::string::npos;) {
    const size_t next = text.find(',', at + 1);
    const std::string pair = text.substr(at + 1, next == std::string::npos ? next : next - at - 1);
    at = next;
    const size_t equals = pair.find('=');
    if (equals == std::string::npos) {
      return Error{fmt::format("'{}' is not key=value", pair), "--optimizer",
                   "write for instance sgd:momentum=0.9,impl=fused"};
    }
    const std::string key = pair.substr(0, equals);
    if (!given.insert(key).second) {
      return Error{fmt::format("{} is given twice", key), "--optimizer " + text, "give each key once"};
    }
    if (const Status status = apply(key, pair.substr(equals + 1), spec); !status.ok()) return status.error();
  }
  if (spec.kind == OptimizerKind::rmsprop && spec.impl == OptimizerImpl::fused) {
    return Error{"RMSprop has no fused implementation", "--optimizer", "use impl=foreach or impl=forloop"};
  }
  return spec;
}

}  // namespace

Result<Settings> parse_settings(const std::vector<std::string>& texts, const Settings& taken) {
  Settings settings;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{fmt::format("--set takes KEY=VALUE, not '{}'", text), "--set", "write for instance image=384"};
    }
    const std::string key = text.substr(0, equals);
    const auto same = [&](const auto& other) { return other.first == key; };
    if (equals + 1 == text.size()) return Error{fmt::format("{} has no value", key), "--set", "write KEY=VALUE"};
    if (const auto other = std::find_if(taken.begin(), taken.end(), same); other != taken.end()) {
      return Error{fmt::format("{} is given by {} and by --set {}", key, other->second, text), "--set",
                   "give it in one of them"};
    }
    if (std::any_of(settings.begin(), settings.end(), same)) {
      return Error{fmt::format("{} is given twice", key), "--set", "give it once"};
    }
    settings.emplace_back(key, text.substr(equals + 1));
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
