#include "derive/stride_rules.h"

#include <algorithm>
#include <array>

#include "derive/op_class.h"
#include "derive/view_op.h"

namespace forerun::derive {
namespace {

bool one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A part of a tensor lies as the tensor does.
constexpr std::array<std::string_view, 7> kSlicing = {"slice",  "split",  "split_with_sizes", "chunk",
                                                      "narrow", "unfold", "unsafe_split"};
constexpr std::array<std::string_view, 3> kExpanding = {"expand", "expand_as", "broadcast_to"};

Shape expanded(const TensorState& v, const Shape& sizes) {
  if (v.sizes.size() > sizes.size()) return contiguous_strides(sizes);
  Shape strides(sizes.size(), 0);
  const size_t missing = sizes.size() - v.sizes.size();
  for (size_t d = missing; d < sizes.size(); ++d) {
    if (v.sizes[d - missing] == sizes[d]) strides[d] = v.strides[d - missing];
  }
  return strides;
}

Shape of_view(std::string_view op_name, std::string_view base, const Attributes& attributes, const TensorState& v,
              const Shape& sizes) {
  if (one_of(base, kExpanding)) return expanded(v, sizes);
  if (one_of(base, kSlicing) && v.sizes.size() == sizes.size()) return v.strides;
  if (v.sizes == sizes && base.find("transpose") == std::string_view::npos && base != "t" && base != "permute") {
    return v.strides;
  }
  ViewResult view = view_of(op_name, attributes, v, sizes);
  return view.kind == ViewResult::strided ? std::move(view.strides) : contiguous_strides(sizes);
}

Shape image_strides(bool channels_last, const Shape& sizes) {
  return channels_last && (sizes.size() == 4 || sizes.size() == 5) ? channels_last_strides(sizes)
                                                                   : contiguous_strides(sizes);
}

bool any_channels_last(const Values& inputs, size_t first, size_t end) {
  for (size_t i = first; i < std::min(end, inputs.size()); ++i) {
    if (inputs[i] != nullptr && inputs[i]->sizes.size() >= 4 && suggests_channels_last(*inputs[i])) return true;
  }
  return false;
}

// What an elementwise op reads with its result's shape, or broadcast to it.
Values broadcastable(const Values& inputs, const Shape& sizes) {
  Values fitting;
  for (const Value& v : inputs) {
    if (v == nullptr || v->sizes.empty() || v->sizes.size() > sizes.size()) continue;
    const size_t missing = sizes.size() - v->sizes.size();
    bool fits = true;
    for (size_t d = 0; d < v->sizes.size(); ++d) {
      fits = fits && (v->sizes[d] == 1 || v->sizes[d] == sizes[d + missing]);
    }
    if (fits) fitting.push_back(v);
  }
  return fitting;
}

Shape of_copy(const TensorState& v, const Attributes& attributes, const Shape& sizes) {
  if (v.sizes != sizes) return contiguous_strides(sizes);
  const std::string format = attributes.get_string("memory_format", "");
  if (format == "contiguous_format") return contiguous_strides(sizes);
  if (format == "channels_last") return image_strides(true, sizes);
  if (format == "preserve_format" || is_channels_last(v)) return preserved_strides(v);
  return contiguous_strides(sizes);
}

// [batch, heads, length, width] that lies as [batch, length, heads, width].
Shape heads_inside(const Shape& sizes) { return {sizes[1] * sizes[2] * sizes[3], sizes[3], sizes[1] * sizes[3], 1}; }

}  // namespace

Shape result_strides(std::string_view op_name, const Attributes& attributes, const Values& inputs, const Shape& sizes,
                     size_t place) {
  if (inputs.empty() || inputs[0] == nullptr || sizes.empty()) return contiguous_strides(sizes);
  const std::string_view base = base_name(op_name);
  const TensorState& first = *inputs[0];
  switch (op_class(op_name)) {
    case OpClass::view: return of_view(op_name, base, attributes, first, sizes);
    case OpClass::elementwise: {
      const Values operands = broadcastable(inputs, sizes);
      return operands.empty() ? contiguous_strides(sizes) : elementwise_strides(sizes, operands);
    }
    case OpClass::convolution:
      return image_strides(is_backward(base) ? any_channels_last(inputs, 1, 3) : any_channels_last(inputs, 0, 2),
                           sizes);
    case OpClass::normalization:
      if (base.find("batch_norm") == std::string_view::npos) return contiguous_strides(sizes);
      return image_strides(any_channels_last(inputs, 0, 2), sizes);
    case OpClass::pooling: return image_strides(any_channels_last(inputs, 0, 2), sizes);
    case OpClass::attention:
      return sizes.size() == 4 && (is_backward(base) || place == 0) ? heads_inside(sizes) : contiguous_strides(sizes);
    case OpClass::copy:
      if (base == "cat") return image_strides(any_channels_last(inputs, 0, 1), sizes);
      return of_copy(first, attributes, sizes);
    default: return contiguous_strides(sizes);
  }
}

}  // namespace forerun::derive
