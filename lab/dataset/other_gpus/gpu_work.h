// GpuWork: an op as predictors of other GPUs see it (Habitat, NeuSight): a kind, the sizes of what it computes, FLOPs and bytes.
//
// An op is one piece of work, or several where it computes several products (a convolution's two gradients). Whatever is no
// product, softmax or layer norm is taken as element-wise by its bytes, since bytes decide its time; its FLOPs are one an element.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "derive/work.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/training_run.h"

namespace forerun::learn {

enum class WorkKind : uint8_t { linear, batched_product, convolution, softmax, layer_norm, elementwise };
inline constexpr std::array kWorkKinds = {WorkKind::linear,  WorkKind::batched_product, WorkKind::convolution,
                                          WorkKind::softmax, WorkKind::layer_norm,      WorkKind::elementwise};
std::string_view name_of(WorkKind kind);
constexpr bool is_product(WorkKind kind) { return kind <= WorkKind::convolution; }

struct GpuWork {
  WorkKind kind = WorkKind::elementwise;
  GemmShape product;   // of products; a convolution as the product that it is
  int64_t window = 1;  // elements of a convolution's filter window
  int64_t rows = 0;    // of softmax and layer norm; else elements: written, or read where a reduction reads more
  int64_t width = 1;   // of a row
  double flops = 0;
  double bytes = 0;
  Unit unit = Unit::fp32;  // that computes it
  bool winograd =
      false;  // a 3 x 3 window moved one by one: Winograd's algorithm can do it with 2.25 times fewer products

  [[nodiscard]] double intensity() const { return bytes > 0 ? flops / bytes : 0; }
  bool operator==(const GpuWork&) const = default;
};

// Nothing of an op that has no work on the GPU.
std::vector<GpuWork> gpu_work(const Graph& graph, const Op& op, Precision precision);

// Work in float32 by its sizes alone, for ops that are not part of a graph.
GpuWork product_work(const GemmShape& product);  // batched where there are several
GpuWork row_work(WorkKind kind, int64_t rows, int64_t width, int64_t tensors = 2);
GpuWork elementwise_work(int64_t elements, int64_t tensors);

// Thread blocks that an element-wise op, a softmax or a layer norm is launched with in PyTorch, of kThreadsOfBlock threads.
inline constexpr int64_t kThreadsOfBlock = 128;
double usual_blocks(const GpuWork& work);

}  // namespace forerun::learn
