#include "compile/arithmetic.h"

#include <algorithm>
#include <string_view>
#include <vector>

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

}  // namespace

Arithmetic arithmetic_of(const Graph& eager, const JointGraph& joint, const Kernel& kernel) {
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
    if (node.has(kScatters)) (node.crowded ? adds.crowded : adds.adds) += node.elements;
    const bool draws = op_class(eager.name(op)) == OpClass::random || name == "native_dropout";
    if (draws && !node.has(kComputedAgain)) counter.add_random();
    if (std::find(seen.begin(), seen.end(), node.op) != seen.end()) continue;
    seen.push_back(node.op);
    counter.add(name, eager.attributes(op).get_string("approximate") == "tanh");
  }
  Arithmetic found = counter.found();
  found.adds = adds.adds;
  found.crowded = adds.crowded;
  return found;
}

}  // namespace forerun::compile
