// Fusion: the nodes that one pass runs, as the kernels that Inductor generates for them.
//
// First lowering: elementwise work is part of whoever reads it, unless somebody needs it stored (a library, the other pass,
// several readers of much), or it reads or computes too much by itself (inner_steps.h). Then the scheduler: what is left joins a kernel
// that it reads from or shares reads with, where their loops fit each other and nothing that lies between has to run in between; the
// kernel that saves the most bytes wins, and elementwise ones that nobody else read yet are taken in. Values that only their own kernel
// reads are not written, but where one loop makes them and the next, behind a reduction, looks at them again. Rules from
// torch/_inductor/lowering.py, ir.py, graph.py, scheduler.py and choices.py of PyTorch 2.11 and 2.13. Left out: kernels of several
// unrelated loops, tiling, fusion into templates.
#pragma once

#include <vector>

#include "compile/joint_graph.h"

namespace forerun::compile {

struct Kernel {
  NodeKind kind = NodeKind::pointwise;
  std::vector<NodeId> nodes;    // a library's: one
  std::vector<NodeId> inlined;  // elementwise nodes that are computed within and stored nowhere
  int64_t elements = 1;         // of its loops; of a reduction, results
  int64_t reduced = 1;
  bool inner = true;
  bool spread = false;          // NodeFlag::kSpread
  bool apart = false;           // Node::apart
  bool parted = false;          // what is reduced is read in parts (Read)
  int64_t pieces = 1;           // that each result is reduced in first (split_rule.h)
  int further = 0;              // kernels that put them together
  std::vector<ValueId> across;  // of `writes`: sums over its rows, in the same kernel (mix_order.h)
  std::vector<Read> reads;
  std::vector<ValueId> writes;
  std::vector<std::vector<ValueId>>
      over;  // by write: what it is made of, element by element, and could be written over
};

// Whether Inductor takes what a kernel reduces for rows, which it holds whole up to kLongestPersistentRow: not where something
// is read across, nor where there are many and some of what is reduced is read in parts (num_splits of torch/_inductor/ir.py,
// get_reduction_hint of codegen/simd_kernel_features.py).
bool is_row(const Kernel& kernel);

// In the order of their first nodes: when they run is decided later (run_order.h). `runs`: by node; `stored`: by value, whether somebody
// beyond this pass reads it.
std::vector<Kernel> fuse(const JointGraph& joint, const std::vector<bool>& runs, const std::vector<bool>& stored);

}  // namespace forerun::compile
