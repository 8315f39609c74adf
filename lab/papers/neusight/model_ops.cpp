#include "lab/papers/neusight/model_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/csv_cells.h"
#include "base/line_reader.h"
#include "graph/attribute.h"
#include "lab/papers/neusight/shape_text.h"

namespace forerun {
namespace {

constexpr const char* kRemedy = "take the file that the authors of NeuSight published again";
constexpr int64_t kMostElements = int64_t{1} << 40;

// The product of all extents but the last; 0 where that is beyond measure.
int64_t rows_of(const Shape& shape) {
  double rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= static_cast<double>(shape[i]);
  return rows < static_cast<double>(kMostElements) ? static_cast<int64_t>(rows) : 0;
}

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return text.ends_with(end); });
}

struct Node {
  bool module = false;
  std::string_view target;
  std::vector<Shape> inputs;
  Shape output;
};

struct KindAndExtents {
  const char* kind;
  std::vector<int64_t> extents;
};

// Kind and extents as op_latency.h has them.
std::optional<KindAndExtents> op_of(const Node& node) {
  if (node.inputs.empty() || node.output.empty() || node.inputs[0].empty()) return std::nullopt;
  const Shape& x = node.inputs[0];
  const int64_t rows = rows_of(node.output);
  const int64_t columns = node.output.back();
  const auto function = [&](std::string_view name) { return node.target.find(name) != std::string_view::npos; };
  if (node.module) {
    if (ends_with_any(node.target,
                      {".dense", ".query", ".key", ".value", "_proj", ".fc1", ".fc2", "lm_head", ".decoder"}))
      return KindAndExtents{"linear", {1, rows, x.back(), columns}};
    if (ends_with_any(node.target, {"LayerNorm", ".ln_1", ".ln_2", ".ln_f", "layer_norm"}))
      return KindAndExtents{"ln", {rows, columns}};
    return std::nullopt;
  }
  if (function("method addmm") && node.inputs.size() == 3 && node.inputs[1].size() == 2)
    return KindAndExtents{"linear", {1, rows, node.inputs[1][1], columns}};
  if (function("method bmm") && node.inputs.size() == 2 && x.size() == 3)
    return KindAndExtents{"bmm", {x[0], x[1], x[2], columns}};
  if (function("function softmax")) return KindAndExtents{"softmax", {rows, columns}};
  return std::nullopt;
}

class ModelOpReader {
 public:
  explicit ModelOpReader(LineReader lines) : lines_(std::move(lines)) {}

  Result<std::vector<OpLatency>> read() {
    auto line = lines_.next();
    if (!line) return line.error();
    if (!*line) return Error{"the file is empty", lines_.name(), kRemedy};
    const auto names = csv_cells(**line);
    for (size_t i = 0; i < kNames.size(); ++i) {
      const auto found = std::find(names.begin(), names.end(), kNames[i]);
      if (found == names.end()) return fault(std::string("the column ") + kNames[i] + " is missing");
      columns_[i] = static_cast<size_t>(found - names.begin());
    }
    std::vector<OpLatency> list;
    while (true) {
      line = lines_.next();
      if (!line) return line.error();
      if (!*line) return list;
      if ((*line)->empty()) continue;
      const Status status = add(csv_cells(**line), list);
      if (!status.ok()) return status.error();
    }
  }

 private:
  static constexpr std::array<const char*, 5> kNames = {"op", "target", "input_shapes", "output_shape", "fw_latency"};

  [[nodiscard]] Error fault(const std::string& what) const {
    return {what, lines_.name() + ", line " + std::to_string(lines_.line_number()), kRemedy};
  }

  Status add(const std::vector<std::string>& cells, std::vector<OpLatency>& list) const {
    if (*std::max_element(columns_.begin(), columns_.end()) >= cells.size()) return fault("the row is too short");
    const auto cell = [&](size_t i) -> const std::string& { return cells[columns_[i]]; };
    if (cell(0) != "call_module" && cell(0) != "call_function") return {};
    const auto inputs = shapes_in(cell(2));
    const auto outputs = shapes_in(cell(3));
    if (!inputs || !outputs) return fault("the shapes are no lists of whole numbers");
    if (outputs->size() != 1) return {};
    const auto op = op_of({cell(0) == "call_module", cell(1), *inputs, outputs->front()});
    if (!op) return {};
    double ms = 0;
    if (!parse_cell(cell(4), ms) || !std::isfinite(ms) || ms < 0)
      return fault("the latency is no number of at least 0");
    auto sample = neusight_op(op->kind, op->extents);
    if (!sample || ms == 0) return {};
    sample->us = 1e3 * ms;
    list.push_back({.gpu = "", .kind = op->kind, .sample = std::move(*sample)});
    return {};
  }

  LineReader lines_;
  std::array<size_t, kNames.size()> columns_ = {};
};

}  // namespace

Result<std::vector<OpLatency>> read_model_ops(const std::string& path) {
  auto lines = LineReader::open(path);
  if (!lines) return lines.error();
  return ModelOpReader(std::move(*lines)).read();
}

Result<std::vector<OpLatency>> model_ops_from_text(std::string_view text, const std::string& name) {
  return ModelOpReader(LineReader::from_text(text, name)).read();
}

}  // namespace forerun
