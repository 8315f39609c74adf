// TracedModel: the forward graph of a model, rebuilt from a trace of its training.
//
// A trace has the calls of the forward pass with shapes, but does not say which tensor a call reads: only that it has this
// shape. Tensors are matched by shape: one that nothing has read yet, the oldest first; then the latest result of a sum, a
// norm or the like, which is where networks branch. A wrong choice among tensors of one shape swaps equal work. What no
// call made is a parameter, a buffer or an input. With the forward graph everything else can be derived again
// (derive/iteration.h) in another precision, layout, optimizer or batch. Left out: backward passes that autograd does not
// derive from these calls (custom functions, checkpointing), and losses other than cross entropy, which stands for them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/device.h"
#include "graph/training_run.h"
#include "ingest/trace/trace_links.h"

namespace forerun::whatif {

struct TracedModel {
  // The forward graph with the batch times a factor. A call's module is its number among the calls ("12").
  std::function<Result<Graph>(double factor)> forward;
  // Of a capture, which has no forward graph: the whole iteration with the batch times a factor, as `setup` has it and no other, but
  // for torch.compile.
  std::function<Result<TrainingRun>(double factor, const Device& device, CompileMode compile)> iteration;
  InputSpec input;                                 // batch as traced; the rest is not told
  TrainingSetup setup;                             // as traced
  std::string name;                                // of the file or model
  std::vector<std::string> warnings;               // of a capture: what makes it doubtful
  std::map<std::string, uint32_t> modules;         // modules whose names are not numbers -> call
  uint32_t calls = 0;                              // of the forward pass, up to the loss
  std::unordered_map<uint32_t, uint32_t> call_of;  // outermost op of the trace (an event), forward and backward -> call
};

// amp_bf16 where products ran in half precision; whether those in float32 were allowed TF32 a trace does not tell.
Precision traced_precision(const Trace& trace);

// An Error where the file has no shapes or values of scalars, or the calls do not fit together.
Result<TracedModel> traced_model(const Trace& trace, const TraceLinks& links);

}  // namespace forerun::whatif
