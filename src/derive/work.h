// OpWork: what an op has to do, whatever the device: floating-point operations and bytes read and written.
//
// From operand shapes and attributes alone.
// - FLOPs: a multiply-add counts two. Matrix products, convolutions, attention and RNNs count their products only (no
//   bias, no activation); other classes count a nominal number per element, because bytes decide their time.
// - Bytes: each operand once, though a kernel may pass over it more often (that is up to cost). Operands that share
//   a storage count no more than it holds, so expanded and repeated inputs are not counted twice. Gathers read the rows
//   they take, not the whole table. What an op only looks at for its shape is not read.
// - The products themselves are kept as GEMM shapes (convolutions as implicit GEMMs), for tile and wave counting.
// An op whose results lie in host memory has no GPU work.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/quantity.h"
#include "derive/op_class.h"
#include "graph/graph.h"

namespace forerun {

// C[m, n] += A[m, k] B[k, n]; `batch` of them at once, `repeats` such batches one after the other.
struct GemmShape {
  int64_t repeats = 1;
  int64_t batch = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;

  [[nodiscard]] double flops() const {
    return 2.0 * static_cast<double>(repeats) * static_cast<double>(batch) * static_cast<double>(m) *
           static_cast<double>(n) * static_cast<double>(k);
  }
  bool operator==(const GemmShape&) const = default;
};

struct OpWork {
  OpClass cls = OpClass::opaque;
  Flops flops;
  Bytes read;
  Bytes written;
  DType compute_dtype = DType::float32;  // of the first floating-point operand
  bool tensor_core_eligible = false;     // products that a tensor core can take, precision permitting
  int64_t tensors = 0;                   // tensors that are updated: entries of a foreach list, else 1
  int64_t launches = 0;                  // kernels of an update over lists (multi_tensor.h); 0: not counted so
  int64_t steps = 0;                     // of a recurrent layer, one after the other, over all layers and directions
  int64_t step_width = 0;                // gates x hidden units that one step computes
  int64_t window = 1;                    // elements of a convolution's filter window
  // Squares of 4 x 4 results of a convolution of images in one group with a plain 3 x 3 window (no strides, no holes), which
  // Winograd's algorithm computes at once; 0: it is another one.
  int64_t winograd_squares = 0;
  bool aligned = true;  // rows of a product are multiples of 16 bytes, as tensor cores like them
  bool on_gpu = false;  // false: views of nothing, marks, results in host memory

  static constexpr size_t kMostGemms = 6;
  std::array<GemmShape, kMostGemms> gemm_table;
  uint8_t gemm_count = 0;

  [[nodiscard]] std::span<const GemmShape> gemms() const { return {gemm_table.data(), gemm_count}; }
  [[nodiscard]] Bytes bytes() const { return read + written; }
  bool operator==(const OpWork&) const = default;
};

OpWork work_of(const Graph& graph, const Op& op);

// The number of lists of a foreach or fused op's flattened inputs: 3 for _foreach_addcmul_.Scalar.
int64_t foreach_lists(std::string_view aten_name, int64_t inputs, bool amsgrad);

}  // namespace forerun
