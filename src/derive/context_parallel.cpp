#include "derive/context_parallel.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>

#include "derive/op_class.h"
#include "derive/regrouped_graph.h"
#include "graph/op_modules.h"

namespace forerun::derive {
namespace {

constexpr std::string_view kAttention = "aten.scaled_dot_product_attention.default";
constexpr size_t kSequenceDim = 2;  // of keys and values: [batch, heads, length, width]

Error mixes_tokens(std::string what) {
  return {std::move(what), "context parallelism", "leave out cp; tp, pp and zero=3 save memory too"};
}

// Whether tokens meet anywhere else than in attention.
Status check_context(const Graph& forward) {
  const ModuleBlocks modules(forward);
  std::set<std::string, std::less<>> blocks, attentive;
  for (const Op& op : forward.ops()) {
    const std::string_view name = forward.name(op);
    const std::string_view block = modules.of(forward.module(op));
    if (!block.empty()) blocks.emplace(block);
    if (name == kAttention) {
      if (op.input_count > 3) return mixes_tokens("attention with a mask is not divided along sequences");
      if (!block.empty()) attentive.emplace(block);
      continue;
    }
    const OpClass cls = op_class(name);
    const bool product = name == "aten.matmul.default" || name == "aten.bmm.default" || name == "aten.baddbmm.default";
    if (!block.empty() && (cls == OpClass::convolution || cls == OpClass::rnn || product)) {
      return mixes_tokens(fmt::format("{} is not divided along sequences", name));
    }
  }
  if (attentive.empty() || attentive.size() < blocks.size()) {
    return mixes_tokens("only models whose blocks all have fused attention are divided along sequences");
  }
  return {};
}

}  // namespace

Result<Graph> context_parallel(const Graph& forward, int64_t gpus) {
  if (gpus == 1) return forward;
  if (const Status status = check_context(forward); !status) return status.error();
  RegroupedGraph graph(forward, [&](TensorId id) {
    const auto extents = forward.shape(id);
    return Shape(extents.begin(), extents.end());
  });
  for (const Op& op : forward.ops()) {
    std::vector<TensorId> inputs = graph.inputs_now(op);
    if (forward.name(op) == kAttention) {
      for (const size_t operand : {size_t{1}, size_t{2}}) {
        Shape whole = graph.shape(inputs[operand]);
        whole[kSequenceDim] *= gpus;
        inputs[operand] = graph.put_in(kGatherSequence, forward.module(op), inputs[operand], whole);
      }
    }
    graph.copy(op, inputs, forward.attributes(op));
  }
  return graph.finish();
}

}  // namespace forerun::derive
