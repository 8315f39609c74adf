// Linear layers whose frozen weights have 4 or 8 bits, as bitsandbytes 0.50 runs them on CUDA.
//
// nf4, fp4: two weights a byte, a scale for each block of 64, a table of 16 values for each layer. A product copies the whole weight
// to the type of the product, multiplies, and lets the copy go; its gradient does the same again. Nothing else is kept for it.
// int8 (LLM.int8()): the rows of the input are quantized too, the product is int32 and scaled to float16; the gradient copies the
// weight to the input's type. The layer's autograd node holds its input as long as the graph lives, checkpointed or not.
// Left out: the kernels that multiply few rows without the copy, columns of outliers (int8 has them handled apart).
#pragma once

#include <map>

#include "base/result.h"
#include "derive/aten.h"
#include "derive/lora.h"
#include "graph/training_run.h"

namespace forerun::derive {

// Linear layers that transformers' BitsAndBytesConfig quantizes, by op of the forward graph: all but the last, routers of experts (no
// layers of torch.nn), weights that others share, and those that the model's class keeps apart (T5's wo).
std::map<size_t, LinearLayer> quantized_layers(const Graph& forward);

// What stands in the place of a weight of [out, in].
struct QuantizedWeight {
  WeightFormat format = WeightFormat::plain;
  DType compute = DType::float32;  // of products with 4 bits
  int64_t out = 0, in = 0;
  Value packed;                              // uint8 [out * in / 2, 1], or int8 [out, in]
  Value scales;                              // float32 by block or row; uint8 where nested
  Value nested_scales, nested_code, offset;  // float32; null where not nested
};

// Makes its roots, a parameter and buffers.
void quantize_root(Tracer& t, const std::string& name, bool nested, QuantizedWeight& weight);

// Bias may be null. The result is of x's type.
Value linear_4bit(Tracer& t, const Value& x, const QuantizedWeight& weight, const Value& bias);
Value linear_8bit(Tracer& t, const Value& x, const QuantizedWeight& weight, const Value& bias);

// Whether an op reads or makes quantized values by a kernel of bitsandbytes.
bool is_quantized_op(std::string_view name);

// What bitsandbytes.gemm_4bit runs within: the weight copied, then the product.
Value gemm_4bit(Tracer& t, const Value& x, const QuantizedWeight& weight, const Value& bias);

}  // namespace forerun::derive
