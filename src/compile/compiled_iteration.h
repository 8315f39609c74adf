// CompiledIteration: a training iteration as it runs when its model is compiled, again as a Graph.
//
// Every kernel that Inductor generates is one op in the namespace `inductor` (pointwise, reduction, scatter):
// its inputs and outputs are what it reads and writes of memory, its attribute `ops` names what is computed in it. Calls of
// libraries, and what runs outside of the compiled graphs, stay the ops they were. Storages live as long as compiled code
// holds them: what the backward pass was kept for until it is read there, the rest until its last reader or until it is handed on
// (buffer_plan.h); gradients that autograd hands in until the backward pass ends. Cost, memory and timeline take the result as any other
// iteration. Modes, time and memory of CUDA graphs are not known here.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/training_run.h"

namespace forerun::compile {

inline constexpr std::string_view kPointwise = "inductor.pointwise.fused";
inline constexpr std::string_view kReduction = "inductor.reduction.fused";
inline constexpr std::string_view kScatter = "inductor.scatter.fused";

bool is_generated(std::string_view op_name);

struct CompiledIteration {
  Graph graph;
  CompiledParts parts;
};

// Whether runs that are trained so are compiled as here.
Status check_setup(const TrainingSetup& setup);

// `loss_inside`: the model computes its loss itself; `autocast`: to what products are cast, where they are (autocast_of). `dynamo`: what Dynamo made of the
// model when it was captured, or null. Where the graph breaks, its pieces are compiled, and `parts` says where.
Result<CompiledIteration> compiled_iteration(const Graph& eager, bool loss_inside, std::optional<DType> autocast = {},
                                             const DynamoTrace* dynamo = nullptr);
std::optional<DType> autocast_of(Precision precision);

}  // namespace forerun::compile
