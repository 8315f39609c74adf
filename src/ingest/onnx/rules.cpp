#include "ingest/onnx/rules.h"

#include <unordered_map>

namespace forerun::ingest {
namespace {

std::unordered_map<std::string_view, const Rule*> all_rules() {
  std::unordered_map<std::string_view, const Rule*> rules;
  for (const auto& list : {layer_rules(), recurrent_rules(), elementwise_rules(), shape_rules(), index_rules()}) {
    for (const Rule& rule : list) {
      CHECK(rules.emplace(rule.type, &rule).second, "two rules for one op: " + std::string(rule.type));
    }
  }
  return rules;
}

}  // namespace

const Rule* find_rule(std::string_view type) {
  static const std::unordered_map<std::string_view, const Rule*> kRules = all_rules();
  const auto found = kRules.find(type);
  return found == kRules.end() ? nullptr : found->second;
}

}  // namespace forerun::ingest
