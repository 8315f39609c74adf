// Data-parallel training: the iteration that one of several GPUs runs, as to its memory.
//
// After PyTorch 2.11's defaults, on the given iteration (all GPUs run the same, on a batch of their own):
// - DDP keeps the gradients once more, in flat buckets that are there from before the first batch. They fill in the order
//   in which gradients come, and one is closed when it holds 1 MiB (the first) or 25 MiB. With gradient_as_bucket_view
//   gradients live in the buckets alone, and one that the backward pass has made goes as soon as it is copied.
// - ZeRO 1 is DDP with ZeroRedundancyOptimizer: each parameter's state lives on one GPU, the largest given out first, each
//   to the GPU that has least. The GPU that has most is meant.
// - ZeRO 2 and 3 are FSDP (fully_shard) of each block of the model (block_of in op_modules.h) and of the rest. Parameters,
//   gradients and state are cut along the first dimension that is as long as there are GPUs, padded to equal pieces. A block's parameters are gathered into a
//   flat buffer and copied out of it before its forward pass; the buffer goes when the next block's is there. ZeRO 3 lets
//   the copies go after the block's forward pass and gathers them again for its backward pass, the next block's one block
//   ahead; ZeRO 2 and the rest of the model keep them. After a block's backward pass its gradients are copied to a flat
//   buffer and reduced to this GPU's piece; that buffer goes when the next block's is reduced.
// Left out: NCCL's own buffers (outside the allocator), that communication runs on streams with pools of their own, DDP's
// first iteration (one bucket), mixed-precision policies of FSDP and buffers kept in step (broadcast_buffers).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "derive/gradient_buckets.h"
#include "graph/graph.h"

namespace forerun {

struct DataParallel {
  int64_t gpus = 1;
  bool replicas = false;  // DDP; also with zero 1
  bool bucket_views = false;
  int zero = 0;  // 0 to 3
  Bytes first_bucket = kFirstBucket;
  Bytes bucket = kBucket;

  [[nodiscard]] bool any() const { return gpus > 1 && (replicas || zero > 0); }
};

// Which gradients share a bucket, given their sizes in the order they come; each bucket's bytes.
std::vector<Bytes> bucket_sizes(const std::vector<Bytes>& gradients, Bytes first, Bytes others);

// The iteration of the GPU that has most.
Graph per_gpu(const Graph& graph, const DataParallel& plan);

// The iteration of one of several micro-batches whose gradients are added up: gradients are there from before, and those
// of this one go as soon as they are added.
Graph accumulating(const Graph& graph);

// Root storages and ops that these put in have names that begin so.
inline constexpr std::string_view kBucketName = "ddp.bucket.";
inline constexpr std::string_view kAccumulatedName = "accumulated.";
inline constexpr std::string_view kGatherOp = "forerun.all_gather";
inline constexpr std::string_view kCopyOutOp = "forerun.copy_out";
inline constexpr std::string_view kReduceOp = "forerun.reduce_scatter";

}  // namespace forerun
