#include "whatif/optimizations.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/nearest.h"

namespace forerun::whatif {

std::span<const Optimization> optimizations() {
  static const std::array<Optimization, 7> kAll = {{
      {"amp", "automatic mixed precision in bfloat16 (rule=daydream: the paper's constants)", {"rule"}, apply_amp},
      {"tf32", "matrix products on TF32 tensor cores", {}, apply_tf32},
      {"channels_last", "convolutional networks in channels-last layout", {}, apply_channels_last},
      {"fused_adam", "Adam's update in one fused kernel", {}, apply_fused_adam},
      {"foreach_adam", "Adam's update by multi-tensor kernels", {}, apply_foreach_adam},
      {"batch", "another batch size: factor=2 for the double", {"factor"}, apply_batch, false},
      {"faster_kernel",
       "kernels whose name contains match, faster by factor",
       {"match", "factor"},
       apply_faster_kernel,
       false},
  }};
  return kAll;
}

std::string Parameters::text(const std::string& key, const std::string& otherwise) const {
  const auto found = values_.find(key);
  return found == values_.end() ? otherwise : found->second;
}

Result<double> Parameters::positive(const std::string& key, double otherwise) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return otherwise;
  double value = 0;
  const std::string& given = found->second;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
  if (error != std::errc() || end != given.data() + given.size() || !(value > 0) || !std::isfinite(value)) {
    return Error{"'" + given + "' is no number above zero", key, "give one, as " + key + "=2"};
  }
  return value;
}

Result<Application> parse_application(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  Application made;
  std::vector<std::string> names;
  for (const Optimization& optimization : optimizations()) {
    names.emplace_back(optimization.name);
    if (optimization.name == name) made.optimization = &optimization;
  }
  if (made.optimization == nullptr) {
    return Error{"there is no optimization '" + name + "'", "--apply", did_you_mean(name, names)};
  }
  std::map<std::string, std::string> values;
  for (size_t at = colon; at != std::string::npos;) {
    const size_t next = text.find(',', at + 1);
    const std::string pair = text.substr(at + 1, next == std::string::npos ? next : next - at - 1);
    const size_t equals = pair.find('=');
    const std::string key = pair.substr(0, equals);
    const auto& known = made.optimization->parameters;
    if (equals == std::string::npos || std::find(known.begin(), known.end(), key) == known.end()) {
      std::string keys;
      for (const std::string_view parameter : known) keys += (keys.empty() ? "" : ", ") + std::string(parameter);
      return Error{"'" + pair + "' is no parameter of " + name, "--apply " + text,
                   keys.empty() ? "it takes none" : "it takes " + keys};
    }
    values[key] = pair.substr(equals + 1);
    at = next;
  }
  made.parameters = Parameters(std::move(values));
  return made;
}

}  // namespace forerun::whatif
