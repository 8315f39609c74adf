#include "scale/memory_use.h"

#include <algorithm>

namespace forerun::scale {
namespace {

constexpr int64_t kContextBytes = int64_t{3} << 29;  // 1.5 GiB: CUDA's context, NCCL's and cuBLAS's buffers

int64_t divided(int64_t bytes, int64_t by) { return (bytes + by - 1) / by; }

// Passes of the forward direction whose backward pass is still to come, at most, in chunks.
int64_t in_flight(const Plan& plan, int64_t device) {
  const int64_t passes = plan.micro_batches * plan.chunks;
  const int64_t ahead = plan.chunks == 1 ? plan.pipeline - device
                                         : 2 * (plan.pipeline - device - 1) + (plan.chunks - 1) * plan.pipeline + 1;
  return std::min(ahead, passes);
}

struct DeviceBlocks {
  int64_t parameters = 0;
  int64_t saved = 0;      // of one micro-batch in all chunks
  int64_t largest = 0;    // block's saved bytes
  int64_t transient = 0;  // block's
  int64_t largest_parameters = 0;
};

DeviceBlocks blocks_of(std::span<const Block> blocks, std::span<const BlockRange> stages, const Plan& plan,
                       int64_t device) {
  DeviceBlocks sum;
  for (int64_t chunk = 0; chunk < plan.chunks; ++chunk) {
    const BlockRange& range = stages[static_cast<size_t>(chunk * plan.pipeline + device)];
    for (size_t i = range.begin; i < range.end; ++i) {
      const Block& block = blocks[i];
      sum.parameters += block.parameters;
      sum.saved += plan.checkpoint && block.layer ? block.output.value : block.saved.value;
      sum.largest = std::max(sum.largest, block.saved.value);
      sum.transient = std::max(sum.transient, block.transient.value);
      sum.largest_parameters = std::max(sum.largest_parameters, block.parameters);
    }
  }
  return sum;
}

}  // namespace

MemoryUse memory_of(std::span<const Block> blocks, std::span<const BlockRange> stages, const Plan& plan,
                    const StateBytes& bytes) {
  MemoryUse most;
  for (int64_t device = 0; device < plan.pipeline; ++device) {
    const DeviceBlocks held = blocks_of(blocks, stages, plan, device);
    MemoryUse use;
    const auto share = [&](int from) { return plan.zero >= from ? plan.data : 1; };
    use.parameters = Bytes(divided(held.parameters * bytes.parameter, share(3)));
    use.gradients = Bytes(divided(held.parameters * bytes.gradient, share(2)));
    use.states = Bytes(divided(held.parameters * bytes.state, share(1)));
    use.activations = Bytes(held.saved * in_flight(plan, device) / plan.chunks);
    if (plan.checkpoint) use.activations += Bytes(held.largest);
    use.transient = Bytes(held.transient);
    // Gathered parameters of this block and the next, and a block's gradients before they are scattered.
    if (plan.zero >= 3) use.transient += Bytes(2 * held.largest_parameters * bytes.parameter);
    if (plan.zero >= 2) use.transient += Bytes(held.largest_parameters * bytes.gradient);
    use.context = Bytes(kContextBytes);
    if (use.total() > most.total()) most = use;
  }
  return most;
}

}  // namespace forerun::scale
