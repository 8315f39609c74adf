#include "compile/compiled_round.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "compile/buffer_plan.h"
#include "compile/partition.h"
#include "compile/run_order.h"
#include "derive/op_class.h"

namespace forerun::compile {
namespace {

// Products are given where to write; the others allocate what they make.
bool makes_itself(const Graph& eager, const JointGraph& joint, const Kernel& kernel) {
  const std::string_view base = base_name(eager.name(eager.op(joint.node(kernel.nodes.front()).op)));
  return base != "mm" && base != "addmm" && base != "bmm" && base != "baddbmm";
}

// The kernels in the order in which they run, and whose memory they take.
CompiledPass scheduled(const Graph& eager, const JointGraph& joint, std::vector<Kernel> kernels,
                       std::vector<bool> stored, const std::vector<bool>& kept) {
  for (size_t i = 0; i < stored.size(); ++i) stored[i] = stored[i] || joint.values[i].returned;
  const PassMemory memory(joint, kernels, stored, kept);
  const std::vector<uint32_t> order = memory.order();
  CompiledPass made;
  made.kernels.reserve(order.size());
  for (const uint32_t kernel : order) made.kernels.push_back(std::move(kernels[kernel]));
  const std::function<int64_t(ValueId)> bytes = [&](ValueId id) { return memory_of(eager, joint.value(id)); };
  const std::function<bool(const Kernel&)> allocates = [&](const Kernel& kernel) {
    return makes_itself(eager, joint, kernel);
  };
  made.takes = plan_buffers(joint, made.kernels, {stored, bytes, allocates}, memory.estimate(order));
  return made;
}

}  // namespace

int64_t memory_of(const Graph& eager, const Value& value) {
  if (!value.tensor.valid() || eager.tensor(value.tensor).dtype != value.dtype) return value.bytes();
  return std::max(value.bytes(), eager.storage(eager.tensor(value.tensor).storage).bytes.value);
}

CompiledRound compiled_round(const Graph& eager, Round round, CompiledParts& found) {
  CompiledRound made{.round = std::move(round), .joint = {}, .kept = {}, .forward = {}, .backward = {}};
  made.joint = joint_graph(eager, made.round);
  const JointGraph& joint = made.joint;
  Partition parts = partition(joint);
  std::vector<bool> stored(joint.values.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    const Value& value = joint.values[i];
    stored[i] = value.forward_result || parts.kept[i];
    if (!parts.kept[i] || !value.made_by.valid()) continue;
    ++found.kept_values;
    found.kept_bytes += value.bytes();
  }
  const std::vector<bool> nothing(stored.size());
  made.forward = scheduled(eager, joint, fuse(joint, parts.in_forward, stored), stored, nothing);
  for (size_t i = 0; i < stored.size(); ++i) stored[i] = joint.values[i].backward_result;
  made.backward = scheduled(eager, joint, fuse(joint, parts.in_backward, stored), stored, parts.kept);
  for (size_t i = 0; i < joint.nodes.size(); ++i) {
    found.nodes += static_cast<int64_t>(parts.in_forward[i]) + static_cast<int64_t>(parts.in_backward[i]);
    if (parts.in_forward[i] && parts.in_backward[i]) ++found.computed_again;
  }
  found.graphs += 2;
  made.kept = std::move(parts.kept);
  return made;
}

}  // namespace forerun::compile
