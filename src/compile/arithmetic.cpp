#include "compile/arithmetic.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "compile/inner_steps.h"
#include "derive/op_class.h"

namespace forerun::compile {
namespace {

std::string_view bare(std::string_view name) {
  std::string_view base = base_name(name);
  while (base.starts_with('_')) base.remove_prefix(1);
  while (base.ends_with('_')) base.remove_suffix(1);
  return base;
}

// Of an activation and its gradient in one kernel the function is taken once: both want it of the same value.
struct Shared {
  int forward = 0;
  int backward = 0;

  [[nodiscard]] int taken() const { return std::max(forward, backward); }
};

class Counter {
 public:
  void add_looks(int looks, bool compares) { (compares ? found_.looks_back : found_.looks) += looks; }
  void add(std::string_view name, bool by_tanh) {
    if (name == "gelu" || name == "gelu_backward") return add_gelu(name == "gelu", by_tanh);
    if (name == "silu") ++silu_.forward;
    if (name == "silu_backward") ++silu_.backward;
    if (name == "softmax" || name == "safe_softmax" || name == "mish") found_.exp += 2;  // to add up, and to divide
    if (name == "cos" || name == "sin") ++found_.trig;
    for (const std::string_view once : {"exp", "sigmoid", "tanh", "log_softmax", "log_softmax_backward_data",
                                        "logsumexp", "softplus", "glu", "glu_backward", "elu", "log_sigmoid_forward"}) {
      found_.exp += static_cast<int>(name == once);
    }
  }
  void add_random() { ++found_.random; }
  void add_norm() { ++found_.norms; }

  [[nodiscard]] Arithmetic found() const {
    Arithmetic all = found_;
    all.erf += erf_.taken();
    all.exp += silu_.taken() + tanh_.taken();
    return all;
  }

 private:
  void add_gelu(bool forward, bool by_tanh) {
    Shared& function = by_tanh ? tanh_ : erf_;
    ++(forward ? function.forward : function.backward);
    if (!forward && !by_tanh) ++found_.exp;  // the slope of erf
  }

  Arithmetic found_;
  Shared erf_, tanh_, silu_;
};

void add_scatter(const JointGraph& joint, const Node& node, Arithmetic& adds) {
  const bool narrow = size_of(joint.value(node.makes.front()).dtype) <= 2;
  switch (node.meeting) {
    case Meeting::seldom: adds.adds += node.elements; break;
    case Meeting::apart: adds.apart += node.elements; break;
    case Meeting::often: (narrow ? adds.often_narrow : adds.often) += node.elements; break;
    case Meeting::always: adds.crowded += node.elements; break;
  }
}

bool takes_statistics(const Graph& eager, const JointGraph& joint, const Kernel& kernel) {
  OpId last;
  for (const NodeId id : kernel.nodes) {
    const Node& node = joint.node(id);
    if (node.kind != NodeKind::reduction || node.backward) continue;
    if (node.op == last && op_class(eager.name(eager.op(node.op))) == OpClass::normalization) return true;
    last = node.op;
  }
  return false;
}

bool holds_statistics(const JointGraph& joint, const std::vector<NodeId>& nodes, OpId norm) {
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    const Node& node = joint.node(id);
    return node.op == norm && node.kind == NodeKind::reduction;
  });
}

}  // namespace

Arithmetic arithmetic_of(const Graph& eager, const JointGraph& joint, const Kernel& kernel, Phase pass) {
  Counter counter;
  Arithmetic adds;
  std::vector<OpId> seen;  // an op may be there by several of its nodes
  std::vector<NodeId> all = kernel.nodes;
  all.insert(all.end(), kernel.inlined.begin(), kernel.inlined.end());
  for (const NodeId id : all) {
    const Node& node = joint.node(id);
    const Op& op = eager.op(node.op);
    const std::string_view name = bare(eager.name(op));
    // Of dropout the mask is drawn, and by no other node of it.
    if (node.has(kScatters)) add_scatter(joint, node, adds);
    const bool draws = op_class(eager.name(op)) == OpClass::random || name == "native_dropout";
    if (draws && !node.has(kComputedAgain)) counter.add_random();
    if (std::find(seen.begin(), seen.end(), node.op) != seen.end()) continue;
    seen.push_back(node.op);
    counter.add(name, eager.attributes(op).get_string("approximate") == "tanh");
    const bool applied = pass == Phase::forward && name.find("batch_norm") != std::string_view::npos &&
                         !holds_statistics(joint, kernel.nodes, node.op);
    if (applied) counter.add_norm();
    counter.add_looks(window_looks(name, eager.attributes(op)),
                      name.starts_with("max_") && is_backward(eager.name(op)));
  }
  Arithmetic found = counter.found();
  found.statistics = takes_statistics(eager, joint, kernel) ? 1 : 0;
  found.adds = adds.adds;
  found.apart = adds.apart;
  found.often = adds.often;
  found.often_narrow = adds.often_narrow;
  found.crowded = adds.crowded;
  return found;
}

void note(const Arithmetic& work, Attributes& attributes) {
  const std::pair<const char*, int64_t> counts[] = {{"random", work.random},  {"erf", work.erf},
                                                    {"exp", work.exp},        {"trig", work.trig},
                                                    {"norms", work.norms},    {"looks", work.looks},
                                                    {"adds", work.adds},      {"looks_back", work.looks_back},
                                                    {"apart", work.apart},    {"statistics", work.statistics},
                                                    {"often", work.often},    {"often_narrow", work.often_narrow},
                                                    {"crowded", work.crowded}};
  for (const auto& [name, count] : counts) {
    if (count > 0) attributes.set(name, count);
  }
}

}  // namespace forerun::compile
