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
  int64_t expert_parameters = 0;
  int64_t saved = 0;      // of one micro-batch in all chunks
  int64_t transient = 0;  // block's
  int64_t largest_parameters = 0;
  int64_t copies = 0;
};

DeviceBlocks blocks_of(std::span<const Block> blocks, std::span<const BlockRange> stages, const Plan& plan,
                       int64_t device) {
  DeviceBlocks sum;
  for (int64_t chunk = 0; chunk < plan.chunks; ++chunk) {
    const BlockRange& range = stages[static_cast<size_t>(chunk * plan.pipeline + device)];
    for (size_t i = range.begin; i < range.end; ++i) {
      const Block& block = blocks[i];
      sum.parameters += block.parameters;
      sum.expert_parameters += block.expert_parameters;
      sum.saved += block.saved.value;
      sum.copies += block.copies.value;
      sum.transient = std::max(sum.transient, block.transient.value);
      sum.largest_parameters = std::max(sum.largest_parameters, block.parameters);
    }
  }
  return sum;
}

}  // namespace

std::vector<MemoryUse> memory_by_device(std::span<const Block> blocks, std::span<const BlockRange> stages,
                                        const Plan& plan, const StateBytes& bytes) {
  std::vector<MemoryUse> devices;
  for (int64_t device = 0; device < plan.pipeline; ++device) {
    const DeviceBlocks held = blocks_of(blocks, stages, plan, device);
    MemoryUse use;
    // Experts are the same on fewer GPUs than the rest.
    const auto shared = [&](int64_t each, int from) {
      if (plan.zero < from) return Bytes(held.parameters * each);
      const int64_t dense = held.parameters - held.expert_parameters;
      return Bytes(divided(dense * each, plan.shards()) +
                   divided(held.expert_parameters * each, plan.shards() / plan.experts));
    };
    use.parameters = shared(bytes.parameter, 3) + Bytes(held.copies);
    if (!plan.reshard) use.parameters += Bytes(held.parameters * bytes.parameter);  // gathered ones stay
    use.gradients = shared(bytes.gradient, 2);
    use.states = plan.offload ? Bytes() : shared(bytes.state, 1);
    use.activations = Bytes(held.saved * in_flight(plan, device) / plan.chunks);
    use.transient = Bytes(held.transient);
    // Gathered parameters of this block and the next, and a block's gradients before they are scattered.
    if (plan.zero >= 3 && plan.reshard) use.transient += Bytes(2 * held.largest_parameters * bytes.parameter);
    if (plan.zero >= 2) use.transient += Bytes(held.largest_parameters * bytes.gradient);
    use.context = Bytes(kContextBytes);
    devices.push_back(use);
  }
  return devices;
}

MemoryUse memory_of(std::span<const Block> blocks, std::span<const BlockRange> stages, const Plan& plan,
                    const StateBytes& bytes) {
  const std::vector<MemoryUse> devices = memory_by_device(blocks, stages, plan, bytes);
  return *std::max_element(devices.begin(), devices.end(),
                           [](const MemoryUse& a, const MemoryUse& b) { return a.total() < b.total(); });
}

}  // namespace forerun::scale
