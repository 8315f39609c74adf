// The strides of a view, from the op that takes it: permute, transpose, view, select, ... of a tensor with these strides.
#pragma once

#include <string_view>

#include "derive/value.h"

namespace forerun::derive {

struct ViewResult {
  enum Kind : uint8_t {
    unknown,  // not an op that these rules know
    strided,  // a view with `strides`
    copied,   // the strides do not allow it: PyTorch's reshape copies
  };
  Kind kind = unknown;
  Shape strides;
};

// `result`: the extents of the op's result.
ViewResult view_of(std::string_view op_name, const Attributes& attributes, const TensorState& v, const Shape& result);

}  // namespace forerun::derive
