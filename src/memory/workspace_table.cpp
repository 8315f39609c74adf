#include "memory/workspace_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/json_file.h"

namespace forerun {
namespace {

constexpr std::array<const char*, 3> kPasses = {"convolution", "input_gradient", "weight_gradient"};

// In the order in which `features_of` gives them.
constexpr std::array<const char*, 23> kFeatures = {
    "half",      "channels_last", "transposed", "groups",         "group_in",      "group_out", "kernel",    "kernel_h",
    "stride",    "dilation",      "batch",      "channels",       "filters",       "image",     "out_image", "in_bytes",
    "out_bytes", "weight_bytes",  "rows",       "channels_mod_8", "filters_mod_8", "padding",   "in_width"};

constexpr std::array<const char*, 18> kRecurrentFeatures = {
    "half",          "mode",           "hidden",       "input",         "batch",           "steps",
    "layers",        "directions",     "hidden_mod_8", "hidden_mod_64", "batch_mod_8",     "hidden_mod_16",
    "hidden_mod_32", "hidden_mod_128", "batch_hidden", "batch_steps",   "recurrent_bytes", "batch_mod_16"};

constexpr double kRecurrentFixed = 8 << 20;  // bytes of a layer and direction
constexpr double kMost = 1e17;               // bytes

struct Sizes {
  double input = 0, output = 0, weight = 0;                       // bytes
  double padded_input = 0, padded_output = 0, padded_weight = 0;  // with channels of each group rounded up
  double element = 4;
};

Sizes sizes_of(const ConvolutionShape& s) {
  Sizes sizes;
  sizes.element = s.half ? 2 : 4;
  const int64_t step = s.half ? 8 : 4;
  const int64_t groups = std::max<int64_t>(s.groups, 1);
  const int64_t in = s.channels / groups;
  const int64_t out = s.filters / groups;
  const auto up = [&](int64_t value) { return static_cast<double>((value + step - 1) / step * step); };
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  const double pixels = real(s.batch) * real(s.image) * sizes.element;
  const double out_pixels = real(s.batch) * real(s.out_image) * sizes.element;
  const double window = real(s.kernel) * sizes.element;
  sizes.input = pixels * real(s.channels);
  sizes.output = out_pixels * real(s.filters);
  sizes.weight = window * real(in) * real(out) * real(groups);
  sizes.padded_input = pixels * up(in) * real(groups);
  sizes.padded_output = out_pixels * up(out) * real(groups);
  sizes.padded_weight = window * up(in) * up(out) * real(groups);
  return sizes;
}

std::array<double, kFeatures.size()> features_of(const ConvolutionShape& s, const Sizes& sizes) {
  const int64_t groups = std::max<int64_t>(s.groups, 1);
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  return {s.half ? 1.0 : 0.0,
          s.channels_last ? 1.0 : 0.0,
          s.transposed ? 1.0 : 0.0,
          real(s.groups),
          real(s.channels / groups),
          real(s.filters / groups),
          real(s.kernel),
          real(s.kernel_height),
          real(s.stride),
          real(s.dilation),
          real(s.batch),
          real(s.channels),
          real(s.filters),
          real(s.image),
          real(s.out_image),
          sizes.input,
          sizes.output,
          sizes.weight,
          real(s.batch) * real(s.out_image),
          real(s.channels % 8),
          real(s.filters % 8),
          real(s.padding),
          real(s.in_width)};
}

// "ratio0.5" with the prefix "ratio" is 0.5.
std::optional<double> factor_after(const std::string& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  double value = 0;
  const char* begin = text.data() + prefix.size();
  const auto [end, fault] = std::from_chars(begin, text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || begin == end) return std::nullopt;
  return value;
}

}  // namespace

bool WorkspaceTable::read_formula(const std::string& text, Node& node) {
  constexpr std::array<std::pair<const char*, uint8_t>, 7> parts = {
      {{"iow", 7}, {"io", 3}, {"iw", 5}, {"ow", 6}, {"i", 1}, {"o", 2}, {"w", 4}}};
  for (const auto& [name, bits] : parts) {
    if (text != name) continue;
    node.formula = Formula::parts;
    node.parts = bits;
    return true;
  }
  constexpr std::array<std::pair<const char*, Formula>, 4> plain = {{{"none", Formula::none},
                                                                     {"plain", Formula::none},
                                                                     {"batched_w4", Formula::batched_weight},
                                                                     {"persistent", Formula::persistent}}};
  for (const auto& [name, formula] : plain) {
    if (text != name) continue;
    node.formula = formula;
    return true;
  }
  if (text == "iow4") {  // the weight in float32
    node.formula = Formula::split_weight;
    node.parts = 3;
    node.factor = 1;
    return true;
  }
  const auto take = [&](std::string_view prefix, Formula formula, uint8_t bits) {
    const std::optional<double> factor = factor_after(text, prefix);
    if (!factor) return false;
    node.formula = formula;
    node.parts = bits;
    node.factor = *factor;
    return true;
  };
  return take("ratio", Formula::all, 0) || take("abs", Formula::bytes, 0) || take("split", Formula::split_weight, 0) ||
         take("iowsplit", Formula::split_weight, 3);
}

WorkspaceTable::Tree WorkspaceTable::read_tree(std::vector<JsonObject> nodes, std::span<const char* const> features) {
  Tree tree;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Node node;
    if (nodes[i].has("is")) {
      const std::string formula = nodes[i].text("is");
      if (!read_formula(formula, node)) nodes[i].fail("is", "unknown formula \"" + formula + "\"");
    } else {
      const std::string feature = nodes[i].text("feature");
      const auto found = std::find(features.begin(), features.end(), feature);
      if (found == features.end()) nodes[i].fail("feature", "unknown feature \"" + feature + "\"");
      node.feature = static_cast<int>(found - features.begin());
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
  if (format != "workspaces/1") file->fail("format", "unknown format \"" + format + "\"", "known is workspaces/1");
  WorkspaceTable table;
  for (size_t pass = 0; pass < kPasses.size(); ++pass) {
    table.convolution_[pass] = read_tree(file->objects(kPasses[pass]), kFeatures);
  }
  table.recurrent_ = read_tree(file->objects("recurrent"), kRecurrentFeatures);
  if (const Status status = file->status(); !status.ok()) return status.error();
  return table;
}

const WorkspaceTable::Node& WorkspaceTable::leaf(const Tree& tree, std::span<const double> features) {
  const Node* node = tree.data();
  while (node->feature >= 0) {
    node = &tree[features[static_cast<size_t>(node->feature)] <= node->at ? node->below : node->above];
  }
  return *node;
}

std::optional<int64_t> WorkspaceTable::convolution(ConvolutionPass pass, const ConvolutionShape& shape) const {
  const Tree& tree = convolution_[static_cast<size_t>(pass)];
  if (tree.empty()) return std::nullopt;
  const Sizes sizes = sizes_of(shape);
  const Node* node = &leaf(tree, features_of(shape, sizes));
  double bytes = 0;
  if (node->formula == Formula::parts || node->formula == Formula::split_weight) {
    bytes += (node->parts & 1U) != 0 ? sizes.padded_input : 0;
    bytes += (node->parts & 2U) != 0 ? sizes.padded_output : 0;
    bytes += (node->parts & 4U) != 0 ? sizes.padded_weight : 0;
  }
  if (node->formula == Formula::split_weight) bytes += sizes.weight * 4 / sizes.element * node->factor;
  if (node->formula == Formula::all) bytes = (sizes.input + sizes.output + sizes.weight) * node->factor;
  if (node->formula == Formula::bytes) bytes = node->factor;
  if (node->formula == Formula::batched_weight) {
    bytes = static_cast<double>(shape.batch) * sizes.weight * 4 / sizes.element;
  }
  return static_cast<int64_t>(std::min(bytes, kMost));
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
  const bool persistent = !recurrent_.empty() && leaf(recurrent_, features).formula == Formula::persistent;
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
