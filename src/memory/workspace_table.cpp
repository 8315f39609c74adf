#include "memory/workspace_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/json_file.h"

namespace forerun {
namespace {

// In the order in which `recurrent` gives them.
constexpr std::array<const char*, 18> kRecurrentFeatures = {
    "half",          "mode",           "hidden",       "input",         "batch",           "steps",
    "layers",        "directions",     "hidden_mod_8", "hidden_mod_64", "batch_mod_8",     "hidden_mod_16",
    "hidden_mod_32", "hidden_mod_128", "batch_hidden", "batch_steps",   "recurrent_bytes", "batch_mod_16"};

constexpr double kRecurrentFixed = 8 << 20;  // bytes of a layer and direction
constexpr double kMost = 1e17;               // bytes

}  // namespace

WorkspaceTable::Tree WorkspaceTable::read_tree(std::vector<JsonObject> nodes) {
  Tree tree;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Node node;
    if (nodes[i].has("is")) {
      const std::string formula = nodes[i].text("is");
      node.persistent = formula == "persistent";
      if (!node.persistent && formula != "plain") nodes[i].fail("is", "unknown formula \"" + formula + "\"");
    } else {
      const std::string feature = nodes[i].text("feature");
      const auto* const found = std::find(kRecurrentFeatures.begin(), kRecurrentFeatures.end(), feature);
      if (found == kRecurrentFeatures.end()) nodes[i].fail("feature", "unknown feature \"" + feature + "\"");
      node.feature = static_cast<int>(found - kRecurrentFeatures.begin());
      node.at = nodes[i].number("at", Sign::not_negative);
      node.below = static_cast<uint32_t>(nodes[i].integer("below"));
      node.above = static_cast<uint32_t>(nodes[i].integer("above"));
      // Children behind their parent: the way down ends.
      if (std::min(node.below, node.above) <= i || std::max(node.below, node.above) >= nodes.size()) {
        nodes[i].fail("below", fmt::format("node {} does not point behind itself", i));
      }
    }
    tree.push_back(node);
  }
  return tree;
}

Result<WorkspaceTable> WorkspaceTable::load(const std::filesystem::path& path) {
  Result<JsonObject> file = JsonObject::read(path);
  if (!file) return file.error();
  const std::string format = file->text("format");
  if (format != "workspaces/2") file->fail("format", "unknown format \"" + format + "\"", "known is workspaces/2");
  WorkspaceTable table;
  table.recurrent_ = read_tree(file->objects("recurrent"));
  const std::string cases = file->has("cases") ? file->text("cases") : std::string();
  if (const Status status = file->status(); !status.ok()) return status.error();
  if (!cases.empty()) {
    Result<ConvolutionCases> loaded = ConvolutionCases::load(path.parent_path() / cases);
    if (!loaded) return loaded.error();
    table.cases_ = std::move(*loaded);
  }
  return table;
}

const WorkspaceTable::Node& WorkspaceTable::leaf(const Tree& tree, std::span<const double> features) {
  const Node* node = tree.data();
  while (node->feature >= 0) {
    node = &tree[features[static_cast<size_t>(node->feature)] <= node->at ? node->below : node->above];
  }
  return *node;
}

int64_t WorkspaceTable::recurrent(const RecurrentShape& s) const {
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  const double gates = s.kind == 2 ? 4 : s.kind == 3 ? 3 : 1;
  const std::array<double, kRecurrentFeatures.size()> features = {
      s.element == 2 ? 1.0 : 0.0,
      std::max<double>(s.kind, 1),
      real(s.hidden),
      real(s.input),
      real(s.batch),
      real(s.steps),
      real(s.layers),
      real(s.directions),
      real(s.hidden % 8),
      real(s.hidden % 64),
      real(s.batch % 8),
      real(s.hidden % 16),
      real(s.hidden % 32),
      real(s.hidden % 128),
      real(s.batch) * real(s.hidden),
      real(s.batch) * real(s.steps),
      real(s.hidden) * real(s.hidden) * gates * real(s.element),
      real(s.batch % 16)};
  const bool persistent = !recurrent_.empty() && leaf(recurrent_, features).persistent;
  const bool lstm = s.kind == 2;
  // Elements for each step of each sequence, as multiples of the hidden size.
  const double with_gates = lstm ? (persistent ? 21 : 5) : 0;
  const double at_least = !persistent ? 3 : lstm ? 15 : s.kind == 3 ? 17 : 12;
  const double hidden = real(s.hidden);
  const double input = s.directions == 2 ? std::max(real(s.input), hidden) : real(s.input);
  const double step = std::max(with_gates * hidden + input, at_least * hidden + std::max(hidden, input) + 2 * input);
  const double state = (lstm ? 10 : 5) * hidden;
  const double elements = real(s.directions) * real(s.batch) * (real(s.steps) * step + state);
  const double fixed = kRecurrentFixed * real(s.layers) * real(s.directions);
  return static_cast<int64_t>(std::min(fixed + real(s.weight_bytes) + real(s.element) * elements, kMost));
}

}  // namespace forerun
