// RandWire (Xie et al. 2019): stages wired by random graphs, edges pointing from lower to higher node numbers.
//
// A node sums its inputs weighted by sigmoids, then ReLU, depthwise 3x3, pointwise, batch norm; nodes without
// predecessors read the stage's input with stride 2; nodes without successors are averaged. Stage i is wired with
// seed + i.
#include <fmt/format.h>

#include <algorithm>

#include "zoo/conv_blocks.h"
#include "zoo/random_wiring.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

constexpr size_t kNeighbours = 4;  // Watts-Strogatz
constexpr double kRewire = 0.75;
constexpr double kEdge = 0.2;    // Erdos-Renyi
constexpr size_t kAttached = 5;  // Barabasi-Albert

std::optional<Wiring> wire(ForwardBuilder& b, const std::string& kind, size_t nodes, uint32_t seed) {
  const size_t least = kind == "ws" ? kNeighbours : kind == "ba" ? kAttached + 1 : 1;
  if (kind != "ws" && kind != "er" && kind != "ba") {
    b.fail(fmt::format("there is no random graph of kind '{}'", kind.substr(0, 20)), "use kind=ws, er or ba");
    return std::nullopt;
  }
  if (nodes < least) {
    b.fail(fmt::format("a {} graph needs at least {} nodes", kind, least), "use more nodes");
    return std::nullopt;
  }
  if (kind == "er") return erdos_renyi(nodes, kEdge, seed);
  if (kind == "ba") return barabasi_albert(nodes, kAttached, seed);
  std::optional<Wiring> wiring = watts_strogatz(nodes, kNeighbours, kRewire, seed);
  if (!wiring) b.fail(fmt::format("seed {} gives no connected graph", seed), "use another seed");
  return wiring;
}

TensorId node(ForwardBuilder& b, const std::vector<TensorId>& inputs, int64_t stride, int64_t out) {
  TensorId x = inputs.front();
  if (inputs.size() > 1) {
    const auto count = static_cast<int64_t>(inputs.size());
    const TensorId weights = b.unary("aten.sigmoid.default", b.parameter("w", {count}));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const TensorId weighted = b.mul(inputs[i], b.select(weights, 0, static_cast<int64_t>(i)));
      x = i == 0 ? weighted : b.add(x, weighted);
    }
  }
  const Scope scope(b, "conv");
  const int64_t in = b.extent(x, 1);
  x = activate(b, "0", Activation::relu, x);
  x = Conv2d(b, "1", in, in, {.kernel = 3, .stride = stride, .padding = 1, .groups = in, .bias = false})(x);
  x = Conv2d(b, "2", in, out, {.kernel = 1, .bias = false})(x);
  return BatchNorm(b, "3", out)(x);
}

TensorId stage(ForwardBuilder& b, TensorId x, const Wiring& wiring, int64_t out) {
  std::vector<TensorId> outputs;
  std::optional<TensorId> total;
  int64_t leaves = 0;
  for (size_t i = 0; i < wiring.size(); ++i) {
    const Scope scope(b, fmt::format("nodes.{}", i));
    std::vector<TensorId> inputs;
    for (const size_t j : wiring[i]) {
      if (j < i) inputs.push_back(outputs[j]);
    }
    const bool entry = inputs.empty();
    outputs.push_back(node(b, entry ? std::vector<TensorId>{x} : inputs, entry ? 2 : 1, out));
  }
  for (size_t i = 0; i < wiring.size(); ++i) {
    const bool leaf = std::none_of(wiring[i].begin(), wiring[i].end(), [&](size_t j) { return j > i; });
    if (!leaf) continue;
    total = total ? b.add(*total, outputs[i]) : outputs[i];
    ++leaves;
  }
  return b.unary("aten.div.Tensor", *total, {{"other", leaves}});
}

void build_randwire(ForwardBuilder& b, const Configuration& c) {
  const int64_t stages = c.integer("stages");
  const int64_t channels = c.integer("ch");
  const int64_t nodes = c.integer("nodes");
  if (stages > 16 || nodes > 1024) {
    b.fail(fmt::format("{} stages of {} nodes are too many", stages, nodes), "use at most 16 stages of 1024 nodes");
    return;
  }
  TensorId x = image_input(b, c);
  const int64_t stem = std::max<int64_t>(channels / 2, 1);
  {
    const Scope scope(b, "stem");
    x = Conv2d(b, "0", c.integer("channels"), stem, {.kernel = 3, .stride = 2, .padding = 1, .bias = false})(x);
    x = BatchNorm(b, "1", stem)(x);
  }
  for (int64_t i = 0; i < stages; ++i) {
    const auto seed = static_cast<uint32_t>(c.integer("seed") + i);
    const std::optional<Wiring> wiring = wire(b, c.text("kind"), static_cast<size_t>(nodes), seed);
    if (!wiring) return;
    const Scope scope(b, fmt::format("stages.{}", i));
    x = stage(b, x, *wiring, channels << i);
  }
  const Scope head(b, "head");
  x = activate(b, "0", Activation::relu, x);
  x = Conv2d(b, "1", b.extent(x, 1), 1280, {.kernel = 1, .bias = false})(x);
  x = BatchNorm(b, "2", 1280)(x);
  x = activate(b, "3", Activation::relu, x);
  x = global_pool(b, "4", x);
  {
    const Scope flatten(b, "5");
    x = b.flatten(x, 1);
  }
  b.result(Linear(b, "6", 1280, c.integer("classes"))(x));
}

}  // namespace

Family randwire_family() {
  return {.name = "randwire",
          .description = "RandWire: randomly wired stages",
          .parameters = with_image_parameters({
              {"kind", "ws", "random graph: ws (Watts-Strogatz), er (Erdos-Renyi) or ba (Barabasi-Albert)"},
              {"nodes", int64_t{32}, "nodes of each stage"},
              {"ch", int64_t{78}, "channels of the first stage; each later stage doubles them"},
              {"stages", int64_t{4}, "randomly wired stages"},
              {"seed", int64_t{0}, "seed of the first stage's graph; each later stage takes the next"},
          }),
          .build = build_randwire};
}

std::vector<NamedModel> randwire_models() {
  const auto wired = [](const char* name, const char* kind) { return NamedModel{name, "randwire", {{"kind", kind}}}; };
  return {wired("randwire_ws", "ws"), wired("randwire_er", "er"), wired("randwire_ba", "ba")};
}

}  // namespace forerun::zoo
