#include "lab/papers/neusight/op_latency.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/csv_cells.h"
#include "base/line_reader.h"

namespace forerun {
namespace {

constexpr int64_t kLargestExtent = int64_t{1} << 31;

SampleTensor matrix(Shape shape) { return {DType::float32, std::move(shape), std::nullopt}; }

using Extents = std::vector<int64_t>;
using Build = bool (*)(const Extents&, OpSample&);

bool build_bmm(const Extents& d, OpSample& sample) {
  sample.op = "aten.bmm.default";
  sample.inputs = {matrix({d[0], d[1], d[2]}), matrix({d[0], d[2], d[3]})};
  sample.outputs = {matrix({d[0], d[1], d[3]})};
  return true;
}

bool build_linear(const Extents& d, OpSample& sample) {
  sample.op = "aten.addmm.default";
  SampleTensor weight = matrix({d[2], d[3]});
  weight.strides = Shape{1, d[2]};
  sample.inputs = {matrix({d[3]}), matrix({d[0] * d[1], d[2]}), weight};
  sample.outputs = {matrix({d[0] * d[1], d[3]})};
  return true;
}

bool build_conv(const Extents& d, OpSample& sample) {
  const int64_t window = d[3];
  const int64_t stride = d[5];
  const int64_t padding = d[6];
  const int64_t out = stride > 0 ? (d[4] + 2 * padding - window) / stride + 1 : 0;
  if (out < 1) return false;
  sample.op = "aten.convolution.default";
  sample.inputs = {matrix({d[0], d[1], d[4], d[4]}), matrix({d[2], d[1], window, window})};
  sample.outputs = {matrix({d[0], d[2], out, out})};
  sample.attributes.set("stride", Shape{stride, stride});
  sample.attributes.set("padding", Shape{padding, padding});
  sample.attributes.set("dilation", Shape{1, 1});
  sample.attributes.set("groups", int64_t{1});
  sample.attributes.set("transposed", false);
  return true;
}

bool build_norm(const Extents& d, OpSample& sample) {
  sample.op = "aten.native_layer_norm.default";
  sample.inputs = {matrix({d[0], d[1]}), matrix({d[1]}), matrix({d[1]})};
  sample.outputs = {matrix({d[0], d[1]}), matrix({d[0], 1}), matrix({d[0], 1})};
  sample.attributes.set("normalized_shape", Shape{d[1]});
  return true;
}

bool build_softmax(const Extents& d, OpSample& sample) {
  sample.op = "aten._softmax.default";
  sample.inputs = {matrix({d[0], d[1]})};
  sample.outputs = sample.inputs;
  sample.attributes.set("dim", int64_t{-1});
  return true;
}

template <size_t inputs>
bool build_elementwise(const Extents& d, OpSample& sample) {
  sample.inputs.assign(inputs, matrix({d[0], d[1]}));
  sample.outputs = {matrix({d[0], d[1]})};
  return true;
}

struct Kind {
  const char* name;
  const char* op;  // of element-wise kinds
  Build build;
  std::vector<const char*> columns;
};

const std::vector<Kind>& kinds() {
  static const std::vector<const char*> product = {"B", "M", "N", "K"};
  static const std::vector<const char*> rows = {"B", "H"};
  static const std::vector<Kind> list = {
      {"bmm", "", build_bmm, product},
      {"linear", "", build_linear, product},
      {"conv",
       "",
       build_conv,
       {"B", "Input_Channel", "Output_Channel", "Kernel_Szie", "Input_Size", "Stride", "Padding"}},
      {"ln", "", build_norm, rows},
      {"softmax", "", build_softmax, rows},
      {"add", "aten.add.Tensor", build_elementwise<2>, rows},
      {"mul", "aten.mul.Tensor", build_elementwise<2>, rows},
      {"div", "aten.div.Tensor", build_elementwise<2>, rows},
      {"pow", "aten.pow.Tensor_Tensor", build_elementwise<2>, rows},
      {"addu", "aten.add.Tensor", build_elementwise<1>, rows},
      {"mulu", "aten.mul.Tensor", build_elementwise<1>, rows},
      {"divu", "aten.div.Tensor", build_elementwise<1>, rows},
      {"powu", "aten.pow.Tensor_Scalar", build_elementwise<1>, rows},
      {"relu", "aten.relu.default", build_elementwise<1>, rows},
      {"gelu", "aten.gelu.default", build_elementwise<1>, rows},
      {"tanh", "aten.tanh.default", build_elementwise<1>, rows},
  };
  return list;
}

const Kind* kind_named(std::string_view name) {
  const auto kind = std::find_if(kinds().begin(), kinds().end(), [&](const Kind& k) { return name == k.name; });
  return kind == kinds().end() ? nullptr : &*kind;
}

class LatencyReader {
 public:
  explicit LatencyReader(LineReader lines) : lines_(std::move(lines)) {}

  Result<std::vector<OpLatency>> read() {
    auto line = lines_.next();
    if (!line) return line.error();
    if (!*line) return Error{"the file is empty", lines_.name(), kRemedy};
    const auto names = csv_cells(**line);
    for (size_t i = 0; i < names.size(); ++i) columns_.emplace(names[i], i);
    std::vector<OpLatency> list;
    while (true) {
      line = lines_.next();
      if (!line) return line.error();
      if (!*line) return list;
      if ((*line)->empty()) continue;
      auto latency = row(csv_cells(**line));
      if (!latency) return latency.error();
      list.push_back(std::move(*latency));
    }
  }

 private:
  static constexpr const char* kRemedy = "unpack the file that the authors of NeuSight published again";

  [[nodiscard]] Error fault(const std::string& what) const {
    return {what, lines_.name() + ", line " + std::to_string(lines_.line_number()), kRemedy};
  }

  [[nodiscard]] const std::string* cell(const std::vector<std::string>& cells, const char* name) const {
    const auto found = columns_.find(name);
    return found != columns_.end() && found->second < cells.size() ? &cells[found->second] : nullptr;
  }

  // The product of three extents; 0 where one is missing or no sound number.
  [[nodiscard]] int64_t volume(const std::vector<std::string>& cells, std::initializer_list<const char*> names) const {
    double all = 1;
    for (const char* name : names) {
      const std::string* text = cell(cells, name);
      double extent = 0;
      if (text == nullptr || !parse_cell(*text, extent) || !(extent >= 1 && extent <= kLargestExtent)) return 0;
      all *= std::floor(extent);
    }
    return all <= 1e15 ? static_cast<int64_t>(all) : 0;
  }

  [[nodiscard]] Result<OpLatency> row(const std::vector<std::string>& cells) const {
    const std::string* name = cell(cells, "OPName");
    const std::string* gpu = cell(cells, "Device");
    const std::string* latency = cell(cells, "Latency");
    if (name == nullptr || gpu == nullptr || latency == nullptr) return fault("OPName, Latency or Device is missing");
    const Kind* kind = kind_named(*name);
    if (kind == nullptr) return fault("'" + *name + "' is no known kind of op");
    Extents extents;
    for (const char* column : kind->columns) {
      const std::string* extent = cell(cells, column);
      int64_t value = 0;
      if (extent == nullptr || !parse_cell(*extent, value) || value < 0 || value > kLargestExtent) {
        return fault(std::string("the extent ") + column + " is missing or no whole number");
      }
      extents.push_back(value);
    }
    double ms = 0;
    if (!parse_cell(*latency, ms) || !std::isfinite(ms) || ms <= 0) return fault("the latency is no number above 0");
    std::optional<OpSample> sample = neusight_op(*name, extents);
    if (!sample) return fault("the window is larger than the image");
    sample->us = 1e3 * ms;
    OpLatency result{.gpu = *gpu, .kind = *name, .sample = std::move(*sample)};
    if (const std::string* kernel = cell(cells, "Kernel Name")) result.kernel = *kernel;
    result.blocks = volume(cells, {"Grid x", "Grid y", "Grid z"});
    result.threads = volume(cells, {"Block x", "Block y", "Block z"});
    return result;
  }

  LineReader lines_;
  std::map<std::string, size_t, std::less<>> columns_;
};

}  // namespace

std::optional<OpSample> neusight_op(std::string_view name, const std::vector<int64_t>& extents) {
  const Kind* kind = kind_named(name);
  if (kind == nullptr || extents.size() != kind->columns.size()) return std::nullopt;
  OpSample sample;
  sample.op = kind->op;
  if (!kind->build(extents, sample)) return std::nullopt;
  return sample;
}

Result<std::vector<OpLatency>> read_op_latencies(const std::string& path) {
  auto lines = LineReader::open(path);
  if (!lines) return lines.error();
  return LatencyReader(std::move(*lines)).read();
}

Result<std::vector<OpLatency>> op_latencies_from_text(std::string_view text, const std::string& name) {
  return LatencyReader(LineReader::from_text(text, name)).read();
}

}  // namespace forerun
