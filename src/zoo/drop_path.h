// Stochastic depth of the transformers library's image models: a layer's result is dropped for whole samples, which are
// multiplied by 0; what is dropped is computed all the same.
#pragma once

#include <string_view>

#include "graph/forward_builder.h"

namespace forerun::zoo {

// x of [batch, length, width], dropped with probability p; x itself where p is 0.
inline TensorId path_dropped(ForwardBuilder& b, std::string_view module, TensorId x, double p) {
  if (p == 0) return x;
  const ForwardBuilder::Scope scope(b, module);
  const Attributes typed = {{"autocast", true}};  // drawn in the type of x
  TensorId drawn = b.create("aten.rand.default", {b.extent(x, 0), 1, 1}, DType::float32, typed);
  drawn = b.unary("aten.floor.default", b.add_scalar(drawn, 1 - p));
  return b.mul(b.unary("aten.div.Tensor", x, {{"other", 1 - p}}), drawn);
}

}  // namespace forerun::zoo
