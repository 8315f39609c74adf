#include "whatif/traced_op.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "graph/graph_builder.h"

namespace forerun::whatif {
namespace {

using Json = nlohmann::json;

Json parsed(const Trace& trace, NameId text) {
  return text.valid() ? Json::parse(trace.names[text], nullptr, false) : Json();
}

// [[64, 1, 768], [64, 196, 768]] of a list of tensors; empty where it is something else.
std::vector<std::vector<int64_t>> shapes_in(const Json& dims) {
  std::vector<std::vector<int64_t>> shapes;
  for (const Json& entry : dims.is_array() ? dims : Json::array()) {
    if (!entry.is_array()) return {};
    for (const Json& extent : entry) {
      if (!extent.is_number_integer()) return {};
    }
    shapes.push_back(entry.get<std::vector<int64_t>>());
  }
  return shapes;
}

std::vector<bool> flags(const TracedOp& op, size_t argument) {
  if (argument >= op.values.size()) return {};
  std::vector<bool> found;
  const std::string& text = op.values[argument];
  for (size_t at = 0; at < text.size(); ++at) {
    if (text.compare(at, 4, "True") == 0) found.push_back(true);
    if (text.compare(at, 5, "False") == 0) found.push_back(false);
  }
  return found;
}

// Adds tensors in the variant's type and layout.
class OneOp {
 public:
  OneOp(const TracedOp& op, const Variant& variant) : op_(op), variant_(variant) {}

  std::optional<Graph> build() {
    const std::string base = op_.name.rfind("aten::", 0) == 0 ? op_.name.substr(6) : op_.name;
    const size_t first = base == "addmm" || base == "baddbmm" ? 1 : 0;
    if (base == "mm" || base == "bmm" || first == 1) return product(base, first);
    if (base == "cudnn_convolution") return convolution(2, 3, 5);
    if (base == "_conv_depthwise2d") return convolution(5, 4, SIZE_MAX);
    if (base == "convolution_backward") return convolution_backward();
    if (base == "cudnn_batch_norm" || base == "native_batch_norm" || base == "native_layer_norm") return norm(base);
    if (base == "cudnn_batch_norm_backward" || base == "native_batch_norm_backward" ||
        base == "native_layer_norm_backward")
      return norm_backward(base);
    if (base == "_efficient_attention_forward") return attention(false);
    if (base == "_efficient_attention_backward") return attention(true);
    return std::nullopt;
  }

 private:
  using Shape = std::vector<int64_t>;

  [[nodiscard]] const Shape& shape(size_t input) const {
    static const Shape kNone;
    return input < op_.inputs.size() ? op_.inputs[input].shape : kNone;
  }

  // The type that computation has; parameters of norms stay float32 under autocast.
  [[nodiscard]] DType computed() const {
    return variant_.precision == Precision::amp_bf16 ? DType::bfloat16 : DType::float32;
  }

  TensorId tensor(const Shape& extents, DType dtype) {
    int64_t elements = 1;
    for (const int64_t extent : extents) elements *= extent;
    Shape strides(extents.size(), 1);
    for (size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
    if (variant_.channels_last && extents.size() == 4) {
      strides = {extents[1] * extents[2] * extents[3], 1, extents[3] * extents[1], extents[1]};
    }
    return builder_.add_tensor(builder_.add_storage(Bytes(elements * size_of(dtype))), dtype, extents, strides);
  }

  Graph finish(const std::string& name, Phase phase, const std::vector<TensorId>& inputs,
               const std::vector<TensorId>& outputs, const Attributes& attributes = {}) {
    GraphBuilder::OpSpec spec;
    spec.name = name;
    spec.phase = phase;
    spec.inputs = inputs;
    spec.outputs = outputs;
    spec.attributes = &attributes;
    builder_.add_op(spec);
    return builder_.finish();
  }

  std::optional<Graph> product(const std::string& base, size_t first) {
    const Shape& a = shape(first);
    const Shape& b = shape(first + 1);
    if (a.size() < 2 || a.size() != b.size() || a.back() != b[b.size() - 2]) return std::nullopt;
    Shape result = a;
    result.back() = b.back();
    std::vector<TensorId> inputs;
    if (first == 1) inputs.push_back(tensor(shape(0), computed()));
    inputs.push_back(tensor(a, computed()));
    inputs.push_back(tensor(b, computed()));
    return finish("aten." + base + ".default", Phase::forward, inputs, {tensor(result, computed())});
  }

  static Attributes convolution_attributes(const Shape& stride, const Shape& padding, int64_t groups) {
    return {{"stride", stride},
            {"padding", padding},
            {"dilation", Shape(stride.size(), 1)},
            {"transposed", false},
            {"output_padding", Shape(stride.size(), 0)},
            {"groups", groups}};
  }

  std::optional<Graph> convolution(size_t padding_at, size_t stride_at, size_t groups_at) {
    const Shape& x = shape(0);
    const Shape& w = shape(1);
    const Shape padding = op_.ints(padding_at), stride = op_.ints(stride_at);
    if (x.size() != 4 || w.size() != 4 || padding.size() != 2 || stride.size() != 2) return std::nullopt;
    if (stride[0] <= 0 || stride[1] <= 0 || w[1] <= 0) return std::nullopt;
    const int64_t groups = groups_at == SIZE_MAX ? x[1] / w[1] : op_.integer(groups_at, 1);
    const Shape y = {x[0], w[0], (x[2] + 2 * padding[0] - w[2]) / stride[0] + 1,
                     (x[3] + 2 * padding[1] - w[3]) / stride[1] + 1};
    return finish("aten.convolution.default", Phase::forward, {tensor(x, computed()), tensor(w, computed())},
                  {tensor(y, computed())}, convolution_attributes(stride, padding, groups));
  }

  std::optional<Graph> convolution_backward() {
    const Shape& y = shape(0);
    const Shape& x = shape(1);
    const Shape& w = shape(2);
    const Shape stride = op_.ints(4), padding = op_.ints(5);
    if (x.size() != 4 || w.size() != 4 || y.size() != 4 || stride.size() != 2 || padding.size() != 2) {
      return std::nullopt;
    }
    Attributes attributes = convolution_attributes(stride, padding, op_.integer(9, 1));
    std::vector<bool> wanted = flags(op_, 10);
    if (wanted.size() != 3) wanted = {true, true, false};
    attributes.set("output_mask", wanted);
    std::vector<TensorId> outputs;
    if (wanted[0]) outputs.push_back(tensor(x, computed()));
    if (wanted[1]) outputs.push_back(tensor(w, computed()));
    if (wanted[2]) outputs.push_back(tensor({w[0]}, computed()));
    if (outputs.empty()) return std::nullopt;
    return finish("aten.convolution_backward.default", Phase::backward,
                  {tensor(y, computed()), tensor(x, computed()), tensor(w, computed())}, outputs, attributes);
  }

  // cuDNN normalises in float32 and float16; batch norms in bfloat16 go to PyTorch's own kernels.
  [[nodiscard]] std::string dispatched(std::string base) const {
    if (computed() == DType::bfloat16 && base.rfind("cudnn_batch_norm", 0) == 0) base.replace(0, 5, "native");
    return "aten." + base + ".default";
  }

  std::optional<Graph> norm(const std::string& base) {
    const Shape& x = shape(0);
    // Under autocast batch norms keep the type of their input; layer norms compute in float32.
    const DType dtype = base == "native_layer_norm" ? DType::float32 : computed();
    const size_t weight = base == "native_layer_norm" ? 2 : 1;
    const Shape& w = shape(weight);
    if (x.size() < 2 || w.size() != 1) return std::nullopt;
    return finish(dispatched(base), Phase::forward,
                  {tensor(x, dtype), tensor(w, DType::float32), tensor(w, DType::float32)},
                  {tensor(x, dtype), tensor(w, DType::float32), tensor(w, DType::float32)});
  }

  std::optional<Graph> norm_backward(const std::string& base) {
    const bool layer = base == "native_layer_norm_backward";
    const DType dtype = layer ? DType::float32 : computed();
    const Shape& x = shape(0);
    const Shape& w = shape(layer ? 5 : 2);
    if (x.size() < 2 || w.size() != 1) return std::nullopt;
    return finish(dispatched(base), Phase::backward, {tensor(x, dtype), tensor(x, dtype), tensor(w, DType::float32)},
                  {tensor(x, dtype), tensor(w, DType::float32), tensor(w, DType::float32)});
  }

  // The kernels' own ops have [batch, length, heads, width]; the dispatched ones [batch, heads, length, width]. In half
  // precision PyTorch takes the flash kernels instead.
  std::optional<Graph> attention(bool backward) {
    const Shape& q = shape(backward ? 1 : 0);
    const Shape& k = shape(backward ? 2 : 1);
    if (q.size() != 4 || k.size() != 4) return std::nullopt;
    const Shape query = {q[0], q[2], q[1], q[3]}, key = {k[0], k[2], k[1], k[3]};
    const DType dtype = computed();
    const bool flash = dtype == DType::bfloat16;
    std::string name =
        flash ? "aten._scaled_dot_product_flash_attention" : "aten._scaled_dot_product_efficient_attention";
    std::vector<TensorId> inputs = {tensor(query, dtype), tensor(key, dtype), tensor(key, dtype)};
    const TensorId out = tensor(query, dtype);
    if (!backward) {
      return finish(name + ".default", Phase::forward, inputs,
                    {out, tensor({query[0], query[1], query[2]}, DType::float32)});
    }
    inputs.insert(inputs.begin(), out);
    inputs.push_back(out);
    return finish(name + "_backward.default", Phase::backward, inputs,
                  {tensor(query, dtype), tensor(key, dtype), tensor(key, dtype)});
  }

  const TracedOp& op_;
  const Variant variant_;
  GraphBuilder builder_;
};

}  // namespace

int64_t TracedOp::elements(size_t input) const {
  if (input >= inputs.size() || inputs[input].shape.empty()) return 0;
  int64_t count = 1;
  for (const int64_t extent : inputs[input].shape) {
    if (extent < 0 || (extent > 0 && count > (int64_t{1} << 50) / extent)) return 0;
    count *= extent;
  }
  return count;
}

std::vector<int64_t> TracedOp::ints(size_t argument) const {
  if (argument >= values.size()) return {};
  const Json value = Json::parse(values[argument], nullptr, false);
  std::vector<int64_t> found;
  if (!value.is_array()) return {};
  for (const Json& entry : value) {
    if (!entry.is_number_integer()) return {};
    found.push_back(entry.get<int64_t>());
  }
  return found;
}

int64_t TracedOp::integer(size_t argument, int64_t otherwise) const {
  if (argument >= values.size()) return otherwise;
  const Json value = Json::parse(values[argument], nullptr, false);
  return value.is_number_integer() ? value.get<int64_t>() : otherwise;
}

double TracedOp::number(size_t argument, double otherwise) const {
  if (argument >= values.size() || values[argument].empty()) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(values[argument].c_str(), &end);  // "0." too, which is no JSON
  return *end == '\0' && std::isfinite(value) ? value : otherwise;
}

bool TracedOp::flag(size_t argument, bool otherwise) const {
  if (argument >= values.size()) return otherwise;
  if (values[argument] == "True") return true;
  return values[argument] == "False" ? false : otherwise;
}

std::optional<DType> dtype_traced(const std::string& type) {
  static const std::map<std::string, DType> kTypes = {
      {"float", DType::float32},     {"double", DType::float64},      {"c10::BFloat16", DType::bfloat16},
      {"c10::Half", DType::float16}, {"long int", DType::int64},      {"long", DType::int64},
      {"int", DType::int32},         {"short int", DType::int16},     {"short", DType::int16},
      {"signed char", DType::int8},  {"unsigned char", DType::uint8}, {"bool", DType::boolean},
  };
  const auto found = kTypes.find(type);
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

bool in_half(const TracedOp& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [](const TracedTensor& input) {
    return input.type == "c10::BFloat16" || input.type == "c10::Half";
  });
}

std::optional<TracedOp> traced_op(const Trace& trace, EventIndex op) {
  if (op == kNoIndex || trace.events.kind[op] != EventKind::op || trace.events.detail[op] == kNoIndex) {
    return std::nullopt;
  }
  const OpDetail& detail = trace.ops[trace.events.detail[op]];
  const Json dims = parsed(trace, detail.dims), types = parsed(trace, detail.types);
  const Json values = parsed(trace, detail.values);
  if (!dims.is_array()) return std::nullopt;
  TracedOp made;
  made.name = trace.name(op);
  for (size_t i = 0; i < dims.size(); ++i) {
    TracedTensor input;
    bool plain = dims[i].is_array();
    for (const Json& extent : plain ? dims[i] : Json::array()) plain = plain && extent.is_number_integer();
    if (plain) input.shape = dims[i].get<std::vector<int64_t>>();
    if (!plain) input.list = shapes_in(dims[i]);
    if (types.is_array() && i < types.size() && types[i].is_string()) input.type = types[i].get<std::string>();
    made.inputs.push_back(std::move(input));
  }
  for (const Json& value : values.is_array() ? values : Json::array()) {
    made.values.push_back(value.is_string() ? value.get<std::string>() : value.dump());
  }
  return made;
}

std::optional<Graph> graph_of(const TracedOp& op, const Variant& variant) {
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (!op.inputs[i].shape.empty() && op.elements(i) <= 0) return std::nullopt;
  }
  return OneOp(op, variant).build();
}

}  // namespace forerun::whatif
