// The order in which the kernels of a pass run.
//
// Inductor sorts kernels by what they need, then tries three further orders (least memory first, first come first, depth first) and takes
// the one whose estimated peak is the lowest. In its estimate a kernel makes all its values, those too that only itself reads; what the
// pass is given can be freed where the forward pass kept it; what is computed again comes right before whoever needs it first. Rules from
// torch/_inductor/memory.py, topological_sort_schedule of scheduler.py and reordering_to_mimic_autograd_engine of
// torch/_functorch/partitioners.py of PyTorch 2.11. Left out: aliases other than what scatters write into, sizes of pieces of split
// reductions.
#pragma once

#include <cstdint>
#include <vector>

#include "compile/fusion.h"
#include "compile/joint_graph.h"

namespace forerun::compile {

// What of a pass takes memory, in its scheduler's eyes.
class PassMemory {
 public:
  // `kernels` in any order; `stored`: by value, whether somebody beyond this pass reads it; `kept`: by value, whether the forward pass
  // left it for this one.
  PassMemory(const JointGraph& joint, const std::vector<Kernel>& kernels, const std::vector<bool>& stored,
             const std::vector<bool>& kept);

  // Positions of the kernels in the order in which they run; those that what the caller hands in comes from are first.
  [[nodiscard]] std::vector<uint32_t> order() const;

  // Bytes at each kernel of an order, in the order's steps.
  [[nodiscard]] std::vector<int64_t> estimate(const std::vector<uint32_t>& order) const;

 private:
  struct Buffer {
    int64_t bytes = 0;
    uint32_t maker = UINT32_MAX;    // kernel; none: the pass is given it
    std::vector<uint32_t> readers;  // kernels other than the maker
    bool stored = false;
  };

  void add_value(ValueId value, uint32_t maker, const JointGraph& joint, const std::vector<bool>& stored);
  [[nodiscard]] std::vector<uint32_t> sorted() const;
  [[nodiscard]] std::vector<uint32_t> least_memory_first(const std::vector<uint32_t>& baseline) const;
  [[nodiscard]] std::vector<uint32_t> first_come_first(const std::vector<uint32_t>& baseline) const;
  [[nodiscard]] std::vector<uint32_t> depth_first(const std::vector<uint32_t>& baseline) const;
  [[nodiscard]] int64_t peak(const std::vector<uint32_t>& order) const;

  std::vector<Buffer> buffers_;
  std::vector<uint32_t> buffer_of_;           // by value; none: it has no memory of its own in this pass
  std::vector<std::vector<uint32_t>> makes_;  // by kernel: buffers
  std::vector<std::vector<uint32_t>> reads_;  // by kernel: buffers made by others or given
  std::vector<std::vector<uint32_t>> needs_;  // by kernel: kernels
  std::vector<std::vector<uint32_t>> users_;  // by kernel: kernels
  std::vector<int64_t> size_;                 // by kernel: bytes that it makes
  std::vector<bool> first_;                   // by kernel: makes what the caller hands in
  std::vector<bool> again_;                   // by kernel: of the forward pass; in the backward pass, computed again
};

}  // namespace forerun::compile
