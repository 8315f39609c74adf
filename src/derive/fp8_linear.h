// Linear layers whose products run in 8 bits: Transformer Engine's, in its default recipe (delayed scaling, "hybrid": e4m3 forward, e5m2
// for gradients), with bfloat16 around them.
//
// A layer casts its input and its weight to fp8, and at once their transposes, since fp8 products of Hopper take both operands by
// rows; its result is bfloat16. For the backward pass it keeps the transposed input and both copies of the weight. The gradient
// is cast and transposed too, with its sum where there is a bias. Source: transformer_engine/pytorch/module/linear.py (2.x) with
// fp8_autocast alone: weights are cast in every micro-batch (no is_first_microbatch, no fp8_model_init).
// Left out: the history of largest values (a few kernels an iteration), norms fused with layers, attention in fp8, recipes by
// blocks (MXFP8), experts.
#pragma once

#include <map>

#include "base/result.h"
#include "derive/aten.h"
#include "derive/lora.h"

namespace forerun::derive {

// Transformer Engine's own, beside cuBLAS's.
inline constexpr int64_t kFp8WorkspaceBytes = int64_t{32} << 20;

struct Fp8Layer {
  size_t operand = 0;          // of the op: which input the layer is applied to; its weight is the next
  std::optional<size_t> bias;  // likewise
  bool turned = false;         // the weight is [in, out]
};

// Linear layers that train so, by op of the forward graph: those with extents of multiples of 16, as the units want them, but the
// last of the model (`with_last`: a stage's is not), routers and weights that others share. An Error where rows are not multiples of
// 8, which Transformer Engine refuses.
Result<std::map<size_t, Fp8Layer>> fp8_layers(const Graph& forward, bool with_last = false);

// Bias may be null. The result is bfloat16.
Value linear_fp8(Tracer& t, const Value& x, const Value& weight, const Value& bias, bool turned);

// Whether an op makes or multiplies fp8 values by a kernel of Transformer Engine, none of which was measured.
bool is_fp8_op(std::string_view name);
inline constexpr std::string_view kFp8Product =
    "fp8_gemm";  // base name: rows of the first by rows of the second operand

}  // namespace forerun::derive
