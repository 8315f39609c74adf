// The strides of an op's result, from those of its operands: for records that have none (run/1).
//
// Views by their own rules (view_op.h); elementwise ops as PyTorch's iterator orders them; convolutions, batch norms and
// pooling keep channels last; attention writes [batch, length, heads, width] and shows it transposed. Every other kernel
// is taken to write its result contiguously. Guessed: a copy of a transposed tensor is contiguous, one of a
// channels-last image is not (the record does not say which memory format was asked for).
#pragma once

#include <span>

#include "derive/value.h"

namespace forerun::derive {

// `inputs` are the op's operands, with sizes and strides; `place` is the result's among the op's outputs.
Shape result_strides(std::string_view op_name, const Attributes& attributes, const Values& inputs, const Shape& sizes,
                     size_t place);

}  // namespace forerun::derive
