// OpClass: what kind of work a dispatched operation is, from its name alone.
//
// A visible table of names (op_class.cpp), then rules: a trailing underscore (in place) and a `_backward` suffix do not
// change the class; `_foreach_*` and `_fused_*` are optimizer work. A name that neither knows is `opaque`: costed as
// elementwise over its bytes, and reported to the user as unknown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace forerun {

enum class OpClass : uint8_t {
  view,  // no kernel: metadata, allocation, marks
  gemm,
  convolution,
  attention,
  rnn,
  normalization,
  elementwise,
  reduction,
  softmax,
  pooling,  // windows over an image, resampling included
  embedding,
  indexing,   // gather, scatter, sort
  copy,       // layout, type and concatenation copies
  optimizer,  // foreach and fused updates over lists of tensors
  random,
  creation,  // fills
  communication,
  opaque,
};
constexpr size_t kOpClassCount = static_cast<size_t>(OpClass::opaque) + 1;

OpClass op_class(std::string_view aten_name);
std::string_view name_of(OpClass cls);

// "aten._foreach_add_.List" -> "_foreach_add_"; names without namespace or overload stay as they are.
std::string_view base_name(std::string_view aten_name);
// "aten._foreach_add_.List" -> "List"
std::string_view overload_name(std::string_view aten_name);
// Whether the op writes its first input: its base name ends in one underscore.
bool is_in_place(std::string_view aten_name);
// Whether the op computes a gradient: "_softmax_backward_data", "convolution_backward".
bool is_backward(std::string_view aten_name);

}  // namespace forerun
