#include "cli/setup_options.h"

#include <fmt/format.h>

#include <algorithm>

namespace forerun::cli {
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

}  // namespace forerun::cli
