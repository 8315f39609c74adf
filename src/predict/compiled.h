// "How will this run go if the model is compiled?": the same iteration under torch.compile.
//
// `compiled_run` is the one place where a run becomes a compiled one (compile/compiled_iteration.h): whoever builds a run whose setup says so
// gets it, and asks the same of it as of any other. `predict_compiled` asks it beside the eager one, and what the compiler made. Where
// the graph breaks is told as far as ops show it; what Python code does to the compiler beside that is not in them, which is said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/training_run.h"
#include "predict/cost_models.h"
#include "predict/predicted_memory.h"
#include "predict/prediction.h"

namespace forerun {

// The run as its setup has it compiled; one whose setup says nothing of that stays as it is. An Error where the compiler
// refuses the GPU or the setup (derive/compile_support.h), and for what is not predicted compiled, with what to do.
Result<TrainingRun> compiled_run(TrainingRun eager, const Device& device);

// Whether what is asked of memory can be told of a run that is trained so.
Status check_compiled(const TrainingSetup& setup, const MemoryQuestion& question);

// A kernel that was generated, with those that are alike.
struct FusedKernel {
  std::string kind;    // pointwise, reduction, scatter
  std::string ops;     // what is computed in it
  std::string module;  // of its first op
  int64_t count = 0;
  Nanoseconds gpu;  // of all of them
  Bytes bytes;      // read and written, of one
};

// What one op of the compiled iteration runs on the GPU, inside of compiled graphs or beside them.
struct CompiledOp {
  Phase phase = Phase::forward;
  bool inside = false;  // of a compiled graph
  std::string name;     // "inductor.reduction.fused", "aten.mm.default"
  std::string ops;      // what is computed in it, where it was generated
  std::string module;
  int64_t kernels = 0;
  Nanoseconds gpu;
  Bytes bytes;           // of its operands
  int64_t elements = 0;  // of its loops, where it was generated: results, and elements that become one
  int64_t reduced = 0;
};

// What stays a call of a library.
struct OutsideKernels {
  std::string name;  // "aten.mm.default"
  int64_t count = 0;
  Nanoseconds gpu;
};

struct CompiledPrediction {
  Prediction prediction;                                // of the compiled run
  Nanoseconds gpu_low, gpu_high;                        // between which most measured busy times lie (docs/compile.md)
  int64_t pointwise = 0, reductions = 0, scatters = 0;  // generated kernels
  int64_t libraries = 0;                                // calls inside of compiled graphs
  int64_t templates = 0;                                // of those, tuned products with what reads them
  Bytes generated;                                      // that generated kernels read and write in an iteration
  int64_t kept_values = 0;
  Bytes kept;  // for the backward pass
  int64_t computed_again = 0;
  int64_t graphs = 0;                             // compiled, forward and backward ones, of all micro-batches
  std::vector<GraphBreak> breaks;                 // of a micro-batch, in order
  std::optional<double> compile_s;                // of the first iteration; nothing where it was never measured
  Nanoseconds outside_host;                       // what the host does beside compiled graphs
  std::vector<FusedKernel> largest;               // at most ten
  std::vector<OutsideKernels> libraries_by_name;  // at most ten
  std::vector<CompiledOp> ops;                    // all that run on the GPU, in their order
  std::vector<std::string> assumptions;
  std::optional<PredictedLog> memory_log;  // where that of the eager run was asked for too

  [[nodiscard]] CompileMode mode() const { return prediction.setup.compile; }
};

// Of a compiled run.
CompiledPrediction predict_compiled(const TrainingRun& run, const Device& device, const CostModels& cost_models,
                                    const MemoryQuestion& question = {});

}  // namespace forerun
