// Networks of NAS-Bench-201 (Dong and Yang 2020): a stem, three stages of equal cells, blocks of stride 2 between them.
//
// A cell has four nodes with an operation on each of the six edges from an earlier node to a later one. A node sums its
// edges as Python's sum() does, which adds the first to zero; an edge `none` multiplies by zero: both are ops that the
// benchmark's networks run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/options_text.h"
#include "zoo/conv_blocks.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

constexpr size_t kCellNodes = 4;
constexpr int64_t kCellStages = 3;
constexpr const char* kUsualCell =
    "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|";
constexpr const char* kConvCell =
    "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|nor_conv_3x3~0|nor_conv_3x3~1|nor_conv_3x3~2|";
constexpr const char* kResidualCell = "|nor_conv_3x3~0|+|none~0|nor_conv_3x3~1|+|skip_connect~0|none~1|skip_connect~2|";

enum class CellOp { none, skip, conv_1x1, conv_3x3, avg_pool };
constexpr std::array<std::string_view, 5> kCellOps = {"none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3",
                                                      "avg_pool_3x3"};
using Cell = std::vector<std::vector<CellOp>>;  // of the edges into nodes 1, 2, 3; the k-th of a node comes from node k

// nor_conv_3x3~1: an operation, and the node that the edge comes from, which has to be `source`.
std::optional<CellOp> parse_edge(ForwardBuilder& b, std::string_view text, size_t source, size_t node) {
  const size_t tilde = std::min(text.find('~'), text.size());
  const auto found = std::find(kCellOps.begin(), kCellOps.end(), text.substr(0, tilde));
  const std::string where = fmt::format("edge '{}' into node {} of the cell", text.substr(0, 40), node);
  if (found == kCellOps.end()) {
    b.fail(where + " has no known operation", fmt::format("use one of {}", fmt::join(kCellOps, ", ")));
    return std::nullopt;
  }
  if (text.substr(tilde) != fmt::format("~{}", source)) {
    b.fail(fmt::format("{} should come from node {}", where, source), fmt::format("write {}~{}", *found, source));
    return std::nullopt;
  }
  return static_cast<CellOp>(found - kCellOps.begin());
}

std::optional<Cell> parse_cell(ForwardBuilder& b, std::string_view text) {
  const std::vector<std::string_view> nodes = split_list(text, "+");
  if (nodes.size() != kCellNodes - 1) {
    b.fail(fmt::format("cell '{}' has {} nodes with edges", text.substr(0, 120), nodes.size()),
           fmt::format("write {}, separated by '+', as in cell='{}'", kCellNodes - 1, kUsualCell));
    return std::nullopt;
  }
  Cell cell;
  for (size_t node = 1; node < kCellNodes; ++node) {
    const std::string_view own = nodes[node - 1];
    const std::vector<std::string_view> edges = split_list(own, "|");  // nothing before the first and after the last
    if (edges.size() != node + 2 || !edges.front().empty() || !edges.back().empty()) {
      b.fail(fmt::format("node {} of the cell is '{}'", node, own.substr(0, 80)),
             fmt::format("write {} of |operation~node, and | at the end", node));
      return std::nullopt;
    }
    cell.emplace_back();
    for (size_t source = 0; source < node; ++source) {
      const std::optional<CellOp> op = parse_edge(b, edges[source + 1], source, node);
      if (!op) return std::nullopt;
      cell.back().push_back(*op);
    }
  }
  return cell;
}

TensorId relu_conv_norm(ForwardBuilder& b, std::string_view name, TensorId x, int64_t out, int64_t kernel,
                        int64_t stride = 1) {
  const Scope scope(b, fmt::format("{}.op", name));
  x = activate(b, "0", Activation::relu, x);
  x = Conv2d(b, "1", b.extent(x, 1), out,
             {.kernel = kernel, .stride = stride, .padding = kernel / 2, .bias = false})(x);
  return BatchNorm(b, "2", out)(x);
}

TensorId cell_edge(ForwardBuilder& b, const std::string& name, CellOp op, TensorId x) {
  if (op == CellOp::skip) return x;
  if (op == CellOp::conv_1x1 || op == CellOp::conv_3x3) {
    return relu_conv_norm(b, name, x, b.extent(x, 1), op == CellOp::conv_3x3 ? 3 : 1);
  }
  if (op == CellOp::avg_pool) {
    const Scope scope(b, name + ".op");
    PoolOptions options = pooling(3, 1, 1);
    options.count_include_pad = false;
    return b.avg_pool2d(x, options);
  }
  const Scope scope(b, name);
  return b.mul_scalar(x, 0);
}

TensorId run_cell(ForwardBuilder& b, TensorId x, const Cell& cell) {
  std::vector<TensorId> nodes = {x};
  size_t layer = 0;
  for (const std::vector<CellOp>& edges : cell) {
    std::optional<TensorId> total;
    for (size_t source = 0; source < edges.size(); ++source) {
      const TensorId y = cell_edge(b, fmt::format("layers.{}", layer++), edges[source], nodes[source]);
      total = total ? b.add(*total, y) : b.unary("aten.add.Tensor", y, {{"other", int64_t{0}}});
    }
    nodes.push_back(*total);
  }
  return nodes.back();
}

// A residual block that halves the image.
TensorId reduction(ForwardBuilder& b, TensorId x, int64_t out) {
  TensorId y = relu_conv_norm(b, "conv_a", x, out, 3, 2);
  y = relu_conv_norm(b, "conv_b", y, out, 3);
  {
    const Scope scope(b, "downsample");
    {
      const Scope pool(b, "0");
      x = b.avg_pool2d(x, pooling(2, 2));
    }
    x = Conv2d(b, "1", b.extent(x, 1), out, {.kernel = 1, .bias = false})(x);
  }
  return b.add(x, y);
}

void build_nas_cell(ForwardBuilder& b, const Configuration& c) {
  const std::optional<Cell> cell = parse_cell(b, c.text("cell"));
  const int64_t cells = c.integer("cells");
  if (!cell || !reasonable_depth(b, static_cast<double>(kCellStages * cells))) return;
  if (c.integer("image") % 4 != 0) {
    b.fail(fmt::format("an image of side {} cannot be halved twice", c.integer("image")),
           "use image= with a multiple of 4");
    return;
  }
  TensorId x = image_input(b, c);
  const int64_t channels = c.integer("ch");
  {
    const Scope scope(b, "stem");
    x = Conv2d(b, "0", c.integer("channels"), channels, {.kernel = 3, .padding = 1, .bias = false})(x);
    x = BatchNorm(b, "1", channels)(x);
  }
  int64_t number = 0;
  for (int64_t stage = 0; stage < kCellStages; ++stage) {
    if (stage > 0) {
      const Scope scope(b, fmt::format("cells.{}", number++));
      x = reduction(b, x, channels << stage);
    }
    for (int64_t i = 0; i < cells; ++i) {
      const Scope scope(b, fmt::format("cells.{}", number++));
      x = run_cell(b, x, *cell);
    }
  }
  const int64_t last = b.extent(x, 1);
  {
    const Scope scope(b, "lastact");
    x = BatchNorm(b, "0", last)(x);
    x = activate(b, "1", Activation::relu_, x);
  }
  x = global_pool(b, "global_pooling", x);
  b.result(Linear(b, "classifier", last, c.integer("classes"))(b.flatten(x, 1)));
}

}  // namespace

Family nas_cell_family() {
  return {.name = "nas_cell",
          .description = "NAS-Bench-201: stages of cells with an operation on each edge",
          .parameters = with_image_parameters(
              {
                  {"cell", kUsualCell,
                   "operations of the edges into each node, as the benchmark writes them: none, skip_connect, "
                   "nor_conv_1x1, nor_conv_3x3 or avg_pool_3x3, ~ and the node that the edge comes from"},
                  {"ch", int64_t{16}, "channels of the first stage; each of the two later ones doubles them"},
                  {"cells", int64_t{5}, "cells of each stage"},
              },
              32, 10),
          .build = build_nas_cell};
}

std::vector<NamedModel> nas_cell_models() {
  return {{"nas_cell_3x3", "nas_cell", {{"cell", kConvCell}}},
          {"nas_cell_resnet", "nas_cell", {{"cell", kResidualCell}}}};
}

}  // namespace forerun::zoo
