// Kernels that torch.compile generates, and what compiled code costs the host: from data/compile/kernels.json.
//
//   kernel    = fixed time + sqrt(max(memory, statistics)^2 + arithmetic^2 + steps^2 + rows^2)
//   memory    = bytes / (share of the memory's bandwidth), by kind; every operand once; what is read across the order in which it
//               lies at a smaller share
//   arithmetic = elements of its loops x what random numbers, erf, exp, angles and looks into windows cost there (compile/arithmetic.h);
//               rows of reductions that are held whole are filled up to a power of two; what is added into rows, one atomic addition
//               an element
//   steps     = of reductions in a loop: what each piece adds up one after the other
//   statistics = mean and variance of columns, element by element: seen where the bytes take less
//   rows      = of reductions of whole rows: what threads hand each other to add one up
//   host      = cost of a generated kernel, of a call of a library by its kind, of entering a compiled graph (guards, autograd), and of
//               a parameter whose gradient a graph makes
//   compiling = start + cost of every node that is lowered
//   CUDA graph = entering it, a copy of what it is given anew, and one launch; nothing a kernel (cost/host/cuda_graph.h)
//   masked attention = the library's time without a mask x what reading one costs: eager runs, which libraries' times are
//               fitted to, have none where Dynamo's have (DispatchTarget::traced_masks)
//   template  = a product that is tuned: a share of the library's speed, and what reads the product alone is part of it where that
//               saves time, as torch/_inductor/scheduler.py decides by measuring (benchmark_epilogue_fusion)
// Fitted to kernels that PyTorch 2.11 generated on an H200 (docs/compile.md); on other GPUs the shares carry over. Left out:
// what tuning gains over libraries that choose badly, reads that do not lie together, and what of a kernel's input the cache
// still holds.
#pragma once

#include <array>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "cost/host/host.h"
#include "cost/op_cost.h"
#include "device/device.h"
#include "graph/training_run.h"

namespace forerun {

struct GeneratedKind {
  Nanoseconds fixed;
  double bandwidth_share = 1;
  double across_share = 1;   // of what is read in another order than it lies in
  double step_ns = 0;        // an element of a row after the other
  double row_ps = 0;         // a row that is held whole, of so many elements as two warps have threads, and more
  double element_ps = 0;     // an element of a row that is short, and looped over
  double statistics_ps = 0;  // an element whose mean and variance are taken at once
};

struct CompileRange {
  double low = 1;  // measured over predicted: nine of ten set-ups whose family was left out lie between
  double high = 1;
};

// Picoseconds an element on the GPU that was measured.
struct ArithmeticCosts {
  double element = 0;
  double random = 0;
  double erf = 0;
  double exp = 0;
  double trig = 0;
  double norm = 0;          // by statistics of another kernel
  double look = 0;          // at an element of a window,
  double look_back = 0;     // or, of a gradient, at a window that it was in
  double add = 0;           // into a row where others add too,
  double apart = 0;         // where neighbouring threads add far from each other,
  double often = 0;         // often at once,
  double often_narrow = 0;  // in 16 bits,
  double crowded = 0;       // where neighbouring threads add into the same row
};

struct CompileConstants {
  GeneratedKind pointwise, persistent, looped, scatter;
  GeneratedKind looped_short;                        // over rows that could be held whole
  GeneratedKind persistent_columns, looped_columns;  // reductions whose elements do not lie together
  ArithmeticCosts arithmetic;
  double masked_attention = 1;  // cuDNN's attention with a mask that is read, over the same without
  Nanoseconds host_kernel, host_library, host_attention, host_convolution, host_convolution_backward, host_graph,
      host_parameter;
  double start_s = 0;
  double node_s = 0;
  CompileRange gpu, iteration, host_bound, allocated, captured_allocated;  // captured: by CUDA graphs
};

inline constexpr const char* kCompileFile = "compile/kernels.json";
Result<CompileConstants> load_compile_constants(const std::filesystem::path& file);

// How much wider a range is on both sides for modes that were measured in four set-ups or none.
inline constexpr double kHardlyMeasured = 1.25;
// What a template of a product reaches of a library's speed: 0.89 in the median of 47 products in bfloat16 that PyTorch tuned on an H200.
// Left out: three in float32, of which it was half.
inline constexpr double kTemplateShare = 0.9;

// Between which multiples of a prediction most measurements lie, in that mode.
CompileRange range_in(CompileMode mode, const CompileRange& measured);

// What the compiler made of an iteration on that device: ops in the namespace `inductor`, products that are tuned, and what
// CUDA graphs copy. The others stay as they are. An op that became part of another has no kernels.
void cost_compiled(const Graph& graph, const CompiledParts& parts, CompileMode mode, const Device& device,
                   const CompileConstants& constants, std::vector<OpCost>& costs);

// Costs of a host in an iteration with compiled graphs: autograd hands all gradients of a graph on at once, so that a parameter takes
// less than where each has a node of its own.
HostConstants compiled_host(HostConstants constants, const CompiledParts& parts, const CompileConstants& compiled);

// What the host does in an iteration, but for what its loop does by itself. `parts`: what was compiled of it, or null; then `compiled`
// is not looked at.
HostCosts issue_costs(const Graph& graph, const TrainingSetup& setup, const CompiledParts* parts,
                      const std::vector<OpCost>& costs, const HostConstants& constants,
                      const CompileConstants& compiled, double speed);

// What the host does in a compiled iteration: ops outside of compiled graphs as ever. Entering a graph is part of its first op.
void cost_compiled_host(const Graph& graph, const CompiledParts& parts, CompileMode mode,
                        const std::vector<OpCost>& costs, const CompileConstants& constants, double speed,
                        HostCosts& host);
// Of that, what it does beside compiled graphs.
Nanoseconds outside_host(const CompiledParts& parts, const HostCosts& host);

}  // namespace forerun
