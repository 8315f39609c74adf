#include "derive/lora.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

namespace forerun::derive {
namespace {

std::optional<LinearLayer> linear_layer(const Graph& forward, const Op& op) {
  const std::string& name = forward.name(op);
  const bool linear = name == "aten.linear.default";
  if (!linear && name != "aten.addmm.default") return std::nullopt;
  const size_t operand = linear ? 0 : 1;
  const TensorId weight = forward.inputs(op)[operand + 1];
  if (forward.storage(forward.tensor(weight).storage).root != Root::parameter) return std::nullopt;
  const auto shape = forward.shape(weight);
  const size_t out = linear ? 0 : 1;  // transformers' Conv1D has its weight the other way round
  return LinearLayer{forward.module(op), shape[1 - out], shape[out], operand};
}

// What the layers of queries and values are called, one family of models after the other.
const std::vector<std::vector<std::string>>& usual_targets() {
  static const std::vector<std::vector<std::string>> kTargets = {
      {"q_proj", "v_proj"},         {"query", "value"}, {"q", "v"}, {"c_attn"}, {"query_key_value"},
      {"query_proj", "value_proj"}, {"qkv_proj"},       {"qkv"},    {"Wqkv"},   {"q_lin", "v_lin"}};
  return kTargets;
}

bool names_one_of(const std::set<std::string, std::less<>>& known, const std::vector<std::string>& targets) {
  return std::all_of(targets.begin(), targets.end(), [&](const std::string& name) { return known.contains(name); });
}

}  // namespace

std::string_view last_part(std::string_view module) {
  const size_t dot = module.rfind('.');
  return dot == std::string_view::npos ? module : module.substr(dot + 1);
}

std::map<size_t, LinearLayer> linear_layers(const Graph& forward) {
  std::map<size_t, LinearLayer> layers;
  for (size_t i = 0; i < forward.op_count(); ++i) {
    if (std::optional<LinearLayer> layer = linear_layer(forward, forward.ops()[i]))
      layers.emplace(i, std::move(*layer));
  }
  return layers;
}

Result<std::map<size_t, LinearLayer>> adapted_layers(const Graph& forward, const LoraSpec& spec) {
  std::map<size_t, LinearLayer> layers = linear_layers(forward);
  std::set<std::string, std::less<>> known;
  for (const auto& [op, layer] : layers) known.emplace(last_part(layer.module));
  if (layers.empty()) return Error{"the model has no linear layers to put adapters beside", "--lora", "train it whole"};
  std::vector<std::string> targets = spec.targets;
  if (targets.empty()) {
    const auto& usual = usual_targets();
    const auto found = std::find_if(usual.begin(), usual.end(),
                                    [&](const std::vector<std::string>& names) { return names_one_of(known, names); });
    if (found == usual.end()) {
      return Error{"no linear layers are called as those of queries and values usually are", "--lora",
                   fmt::format("name them, --lora RANK:NAME,NAME, out of {}; or all-linear", fmt::join(known, ", "))};
    }
    targets = *found;
  }
  if (targets == std::vector<std::string>{std::string(kAllLinear)}) {
    if (layers.size() > 1) layers.erase(std::prev(layers.end()));
    return layers;
  }
  for (const std::string& target : targets) {
    if (known.contains(target)) continue;
    return Error{fmt::format("the model has no linear layer called '{}'", target), "--lora",
                 fmt::format("it has {}; all-linear means all but the last", fmt::join(known, ", "))};
  }
  std::erase_if(layers, [&](const auto& entry) {
    return std::find(targets.begin(), targets.end(), last_part(entry.second.module)) == targets.end();
  });
  return layers;
}

}  // namespace forerun::derive
