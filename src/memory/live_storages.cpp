#include "memory/live_storages.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "memory/allocator_settings.h"

namespace forerun {
namespace {

// PyTorch's caching allocator: sizes in steps of 512 bytes; up to 1 MiB from 2 MiB segments, up to 10 MiB from 20 MiB
// segments, larger ones in segments of their own in steps of 2 MiB.
constexpr int64_t kSmallest = kMebibyte;
constexpr int64_t kShared = 10 * kMebibyte;
constexpr int64_t kSharedSegment = 20 * kMebibyte;

// cuBLAS on Hopper takes a workspace per thread (forward, backward) at its first GEMM; cuBLASLt one of its own (addmm).
constexpr int64_t kCublasWorkspace = 32 * kMebibyte;
constexpr int64_t kLtWorkspace = kMebibyte;

bool is_gemm(std::string_view name) {
  return name == "aten.mm.default" || name == "aten.bmm.default" || name == "aten.addmm.default" ||
         name == "aten.baddbmm.default" || name == "aten.linear.default" || name == "aten.matmul.default";
}

class Walk {
 public:
  explicit Walk(const Graph& graph)
      : graph_(graph), live_(graph.storages().size(), false), use_(graph.storages().size(), Use::temporary) {}

  MemoryEstimate run() {
    find_roots_and_deaths();
    add_workspaces();
    take_peak(OpId());
    for (size_t i = 0; i < graph_.op_count(); ++i) {
      for (const uint32_t storage : deaths_[i]) release(storage);
      const Op& op = graph_.ops()[i];
      release_accumulated(i, op);
      for (const TensorId output : graph_.outputs(op)) {
        const uint32_t storage = graph_.tensor(output).storage.value;
        if (!live_[storage] && !gone(storage, i)) hold(storage, use_of_new(storage, op.phase));
      }
      take_peak(OpId(i));
    }
    return estimate_;
  }

 private:
  [[nodiscard]] bool gone(uint32_t storage, size_t op) const {
    const OpId freed = graph_.storages()[storage].freed_before;
    return freed.valid() && freed.value <= op;
  }

  void find_roots_and_deaths() {
    deaths_.resize(graph_.op_count() + 1);
    for (uint32_t id = 0; id < graph_.storages().size(); ++id) {
      const Storage& storage = graph_.storages()[id];
      if (storage.freed_before.valid()) deaths_[storage.freed_before.value].push_back(id);
      switch (storage.root) {
        case Root::parameter: hold(id, Use::parameter); break;
        case Root::buffer: hold(id, Use::buffer); break;
        case Root::state: hold(id, Use::state); break;
        case Root::input: hold(id, Use::input); break;
        case Root::none: break;
      }
    }
    // What is read before it is made stood there before: constants that the source does not name.
    std::vector<bool> made(graph_.storages().size());
    for (const Op& op : graph_.ops()) {
      for (const TensorId input : graph_.inputs(op)) {
        const uint32_t storage = graph_.tensor(input).storage.value;
        if (!made[storage] && !live_[storage]) hold(storage, Use::buffer);
      }
      for (const TensorId output : graph_.outputs(op)) made[graph_.tensor(output).storage.value] = true;
    }
  }

  [[nodiscard]] Use use_of_new(uint32_t storage, Phase phase) const {
    const OpId freed = graph_.storages()[storage].freed_before;
    const bool kept = !freed.valid() || freed.value >= graph_.op_count();
    if (phase == Phase::backward && kept) return Use::gradient;
    return phase == Phase::forward ? Use::activation : Use::temporary;
  }

  void hold(uint32_t storage, Use use) {
    live_[storage] = true;
    use_[storage] = use;
    count(storage, 1);
  }
  void release(uint32_t storage) {
    if (!live_[storage]) return;
    live_[storage] = false;
    count(storage, -1);
  }
  void count(uint32_t storage, int64_t sign) {
    const Storage& held = graph_.storages()[storage];
    if (held.on_gpu && held.bytes.value > 0) count_bytes(held.bytes.value, use_[storage], sign);
  }
  void count_bytes(int64_t bytes, Use use, int64_t sign) {
    bytes = round_up(bytes, kMinBlock);
    by_use_[static_cast<size_t>(use)] += sign * bytes;
    allocated_ += sign * bytes;
    if (bytes <= kSmallest) {
      small_ += sign * bytes;
    } else if (bytes < kShared) {
      shared_ += sign * bytes;
    } else {
      large_ += sign * round_up(bytes, 2 * kMebibyte);
    }
  }

  // Workspaces stay once taken, so those of the iteration before are there from the start.
  void add_workspaces() {
    bool forward = false;
    bool backward = false;
    bool light = false;
    for (const Op& op : graph_.ops()) {
      const std::string_view name = graph_.name(op);
      if (op.phase == Phase::update || !is_gemm(name)) continue;
      (op.phase == Phase::forward ? forward : backward) = true;
      light = light || (op.phase == Phase::forward && name == "aten.addmm.default");
    }
    if (forward) count_bytes(kCublasWorkspace, Use::workspace, 1);
    if (backward) count_bytes(kCublasWorkspace, Use::workspace, 1);
    if (light) count_bytes(kLtWorkspace, Use::workspace, 1);
  }

  // Gradients from two places are added in the first one's memory where nothing else needs it.
  void release_accumulated(size_t index, const Op& op) {
    if (op.phase != Phase::backward || graph_.name(op) != "aten.add.Tensor") return;
    if (op.input_count < 2 || op.output_count != 1) return;
    const uint32_t first = graph_.tensor(graph_.inputs(op)[0]).storage.value;
    const uint32_t result = graph_.tensor(graph_.outputs(op)[0]).storage.value;
    const Storage& storage = graph_.storages()[first];
    if (storage.root == Root::none && storage.freed_before == OpId(index + 1) && !live_[result] &&
        storage.bytes == graph_.storages()[result].bytes) {
      release(first);
    }
  }

  void take_peak(OpId op) {
    peak_small_ = std::max(peak_small_, small_);
    peak_shared_ = std::max(peak_shared_, shared_);
    peak_large_ = std::max(peak_large_, large_);
    estimate_.peak_reserved = Bytes(std::max(estimate_.peak_reserved.value, round_up(peak_small_, kSmallSegment) +
                                                                                round_up(peak_shared_, kSharedSegment) +
                                                                                round_up(peak_large_, 2 * kMebibyte)));
    if (allocated_ <= estimate_.peak_allocated.value) return;
    estimate_.peak_allocated = Bytes(allocated_);
    estimate_.peak_op = op;
    set_parts(by_use_, estimate_);
  }

  const Graph& graph_;
  std::vector<bool> live_;
  std::vector<Use> use_;
  std::vector<std::vector<uint32_t>> deaths_;  // by op
  BytesByUse by_use_ = {};
  int64_t allocated_ = 0;
  int64_t small_ = 0, shared_ = 0, large_ = 0;  // by how the allocator takes segments for them
  int64_t peak_small_ = 0, peak_shared_ = 0, peak_large_ = 0;
  MemoryEstimate estimate_;
};

}  // namespace

MemoryEstimate live_storages(const Graph& graph) { return Walk(graph).run(); }

}  // namespace forerun
