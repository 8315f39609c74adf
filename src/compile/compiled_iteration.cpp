#include "compile/compiled_iteration.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "compile/arithmetic.h"
#include "compile/compiled_round.h"
#include "compile/decompose.h"
#include "compile/fusion.h"
#include "compile/joint_graph.h"
#include "compile/mix_order.h"
#include "compile/padding.h"
#include "compile/step_order.h"
#include "derive/op_class.h"
#include "graph/graph_builder.h"

namespace forerun::compile {
namespace {

std::string_view name_of(const JointGraph& joint, const Kernel& kernel) {
  if (kernel.kind == NodeKind::reduction) return kReduction;
  const bool scatters =
      std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [&](NodeId id) { return joint.node(id).has(kScatters); });
  return scatters ? kScatter : kPointwise;
}

class Emitter {
 public:
  Emitter(const Graph& eager, const std::vector<CompiledRound>& rounds, CompiledParts& parts)
      : eager_(eager), rounds_(rounds), parts_(parts), roots_(eager.storages().size()) {
    for (const CompiledRound& round : rounds) {
      for (int pass = 0; pass < 2; ++pass) {
        places_.emplace_back(round.joint.values.size());
        last_use_.emplace_back(round.joint.values.size());
      }
    }
  }

  // Nothing where the pieces of a graph that breaks wait for one another.
  std::optional<Graph> emitted() {
    plan();
    std::optional<std::vector<Step>> order = in_order(eager_, std::move(steps_), rounds_);
    if (!order) return {};
    steps_ = std::move(*order);
    find_reach();
    find_last_uses();
    add_roots();
    for (size_t i = 0; i < steps_.size(); ++i) {
      first_op_.push_back(to_.op_count());
      if (steps_[i].kernel != nullptr) {
        emit_kernel(i);
      } else {
        emit_op(i);
      }
      pass_of_op_.resize(to_.op_count(), steps_[i].pass);
    }
    first_op_.push_back(to_.op_count());
    free_storages();
    for (const TensorId id : eager_.parameters()) to_.add_parameter(tensor(id, outside(id)));
    to_.set_parameter_count(eager_.parameter_count());
    if (eager_.parameters().empty()) to_.set_parameter_tensors(eager_.parameter_tensors());
    return to_.finish();
  }

  // By op of the new iteration that is inside of a compiled graph.
  [[nodiscard]] const std::vector<size_t>& pass_of_op() const { return pass_of_op_; }

 private:
  // Compiled passes run where their first op stood; what stood among their ops runs behind them.
  void plan() {
    std::vector<bool> entered(2 * rounds_.size());
    for (size_t op = 0; op < eager_.op_count(); ++op) {
      const std::optional<size_t> pass = pass_of(rounds_, op);
      if (!pass) {
        steps_.push_back({.op = op, .phase = eager_.ops()[op].phase});
      } else if (!entered[*pass]) {
        entered[*pass] = true;
        const CompiledRound& round = rounds_[*pass / 2];
        const bool forward = *pass % 2 == 0;
        add_pass(forward ? round.forward : round.backward, *pass / 2, op, forward ? Phase::forward : Phase::backward);
      }
    }
  }
  void add_pass(const CompiledPass& pass, size_t round, size_t op, Phase phase) {
    const size_t which = 2 * round + (phase == Phase::backward ? 1 : 0);
    for (const Kernel& kernel : pass.kernels)
      steps_.push_back({.kernel = &kernel, .round = round, .pass = which, .op = op, .phase = phase});
  }

  void find_last_uses() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      if (step.kernel == nullptr) continue;
      for (const Read& read : step.kernel->reads) last_use_[step.pass][read.value.value] = i;
      for (const ValueId made : step.kernel->writes) last_use_[step.pass][made.value] = i;
    }
    // Autograd holds what it hands to the backward pass until that returns.
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      const bool ends = i + 1 == steps_.size() || steps_[i + 1].kernel == nullptr || steps_[i + 1].pass != step.pass;
      if (step.kernel == nullptr || step.phase != Phase::backward || !ends) continue;
      const std::vector<Value>& values = rounds_[step.round].joint.values;
      for (size_t v = 0; v < values.size(); ++v) {
        if (values[v].tangent) last_use_[step.pass][v] = i;
      }
    }
  }

  void add_roots() {
    for (size_t i = 0; i < eager_.storages().size(); ++i) {
      const Storage& storage = eager_.storages()[i];
      if (storage.root == Root::none) continue;
      roots_[i] = to_.add_storage(storage.bytes, storage.on_gpu);
      to_.mark_root(roots_[i], storage.root, eager_.names()[storage.root_name]);
      if (storage.freed_before.valid()) ends_.emplace_back(roots_[i], eager_end(storage.freed_before.value));
    }
  }

  // The step before which something dies that dies before an op of the eager iteration.
  [[nodiscard]] size_t eager_end(size_t op) const {
    return static_cast<size_t>(std::lower_bound(reach_.begin(), reach_.end(), op) - reach_.begin());
  }
  void find_reach() {
    size_t reach = 0;
    for (const Step& step : steps_) reach_.push_back(reach = std::max(reach, step.op));
  }

  // Where a tensor of the eager iteration lies now, outside of compiled graphs.
  StorageId outside(TensorId id) {
    const StorageId old = eager_.tensor(id).storage;
    StorageId& place = roots_[old.value];
    if (!place.valid()) {
      const Storage& storage = eager_.storage(old);
      place = to_.add_storage(storage.bytes, storage.on_gpu);
      if (storage.freed_before.valid()) ends_.emplace_back(place, eager_end(storage.freed_before.value));
    }
    return place;
  }
  TensorId tensor(TensorId id, StorageId storage) {
    return to_.add_tensor(storage, eager_.tensor(id).dtype, eager_.shape(id), eager_.strides(id));
  }

  [[nodiscard]] const Value& value(const Step& step, ValueId id) const { return rounds_[step.round].joint.value(id); }

  // Where a value lies. What this pass did not make lies where the forward pass put it.
  StorageId place_of(const Step& step, ValueId id) {
    StorageId& place = places_[step.pass][id.value];
    const Value& known = value(step, id);
    if (!place.valid() && known.given.valid()) place = outside(known.tensor);
    if (!place.valid() && step.phase == Phase::backward) place = places_[step.pass - 1][id.value];
    if (!place.valid()) place = new_storage(known);
    return place;
  }
  StorageId new_storage(const Value& value) {
    return to_.add_storage(Bytes(std::max<int64_t>(memory_of(eager_, value), 1)));
  }

  // Where a kernel writes: into memory of its own, or into what was handed on to it.
  void place_made(size_t at, ValueId id) {
    const Step& step = steps_[at];
    const CompiledRound& round = rounds_[step.round];
    const ValueId from = (step.phase == Phase::backward ? round.backward : round.forward).takes[id.value];
    const StorageId handed = from.valid() ? place_of(step, from) : StorageId();
    if (place_result(step, id, handed)) return;
    places_[step.pass][id.value] = handed.valid() ? handed : new_storage(value(step, id));
  }

  // A result is where outside ops look for it; it ends as it did there, and not before its last reader here.
  bool place_result(const Step& step, ValueId id, StorageId handed) {
    const Value& made = value(step, id);
    if (!(made.forward_result || made.backward_result) || !made.tensor.valid()) return false;
    const StorageId old = eager_.tensor(made.tensor).storage;
    const Storage& storage = eager_.storage(old);
    if (handed.valid() && !roots_[old.value].valid() && storage.on_gpu) {
      roots_[old.value] = handed;
      if (storage.freed_before.valid()) {
        ends_.emplace_back(handed, eager_end(storage.freed_before.value));
      } else {
        stays_.insert(handed.value);
      }
    }
    places_[step.pass][id.value] = outside(made.tensor);
    return true;
  }

  void emit_kernel(size_t at) {
    const Step& step = steps_[at];
    if (step.kernel->kind == NodeKind::library) return emit_library(at);
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
    for (const Read& read : step.kernel->reads) inputs.push_back(flat(step, read));
    for (const ValueId id : step.kernel->writes) {
      place_made(at, id);
      outputs.push_back(flat(step, {id, value(step, id).elements}));
    }
    const std::string_view name = name_of(rounds_[step.round].joint, *step.kernel);
    if (!step.kernel->across.empty()) return emit_with_sums(step, inputs, outputs);
    if (step.kernel->further > 0) return emit_in_pieces(step, inputs, outputs);
    add_kernel(step, name, *step.kernel, inputs, outputs);
  }

  void add_kernel(const Step& step, std::string_view name, const Kernel& kernel, std::span<const TensorId> inputs,
                  std::span<const TensorId> outputs) {
    const JointGraph& joint = rounds_[step.round].joint;
    Attributes attributes = {{"ops", ops_of(*step.kernel, joint)},
                             {"elements", kernel.elements},
                             {"reduced", kernel.reduced},
                             {"inner", kernel.inner}};
    if (kernel.kind == NodeKind::reduction && kernel.inner && !is_row(kernel)) attributes.set("row", false);
    note(arithmetic_of(eager_, joint, kernel, step.phase), attributes);
    if (const int64_t bytes = read_across(step, kernel); bytes > 0) attributes.set("across", bytes);
    to_.add_op({.name = name,
                .phase = step.phase,
                .module = eager_.module(eager_.op(joint.node(step.kernel->nodes.front()).op)),
                .inputs = inputs,
                .outputs = outputs,
                .attributes = &attributes});
    parts_.inside.push_back(true);
  }

  // Bytes of what it reads in another order than they lie in.
  [[nodiscard]] int64_t read_across(const Step& step, const Kernel& kernel) const {
    int64_t bytes = 0;
    if (kernel.nodes.empty()) return bytes;  // it reads what other kernels left for it
    for (const Read& read : step.kernel->reads) {
      const Value& known = value(step, read.value);
      if (read.across) bytes += std::min(read.elements, known.elements) * static_cast<int64_t>(size_of(known.dtype));
    }
    return bytes;
  }

  // Sums over rows are left by blocks of rows, put together by one kernel each, and cast by another where they are not float32.
  void emit_with_sums(const Step& step, std::span<const TensorId> inputs, std::span<const TensorId> outputs) {
    const Kernel& kernel = *step.kernel;
    const int64_t blocks = row_blocks(kernel.elements);
    const int64_t each[] = {blocks * kernel.reduced};
    const int64_t all[] = {each[0] * static_cast<int64_t>(kernel.across.size())};
    const int64_t strides[] = {1};
    const StorageId buffer = to_.add_storage(Bytes(all[0] * static_cast<int64_t>(size_of(DType::float32))));
    std::vector<TensorId> written;
    std::vector<TensorId> sums;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const bool sum = std::find(kernel.across.begin(), kernel.across.end(), kernel.writes[i]) != kernel.across.end();
      (sum ? sums : written).push_back(outputs[i]);
    }
    written.push_back(to_.add_tensor(buffer, DType::float32, all, strides));
    add_kernel(step, kReduction, kernel, inputs, written);
    const Kernel last = {.kind = NodeKind::reduction,
                         .nodes = {},
                         .inlined = {},
                         .elements = kernel.reduced,
                         .reduced = blocks,
                         .inner = false};
    for (const TensorId sum : sums) {
      const TensorId partial[] = {to_.add_tensor(buffer, DType::float32, each, strides)};
      const TensorId made[] = {sum};
      add_kernel(step, kReduction, last, partial, made);
      if (to_.graph().tensor(sum).dtype != DType::float32) add_kernel(step, kPointwise, last, made, made);
    }
    passing_.emplace_back(buffer, to_.op_count());
  }

  // What is left of a piece of each result: of mean and variance together mean, squares and count.
  [[nodiscard]] int64_t partial_results(const Step& step, const Kernel& kernel) const {
    const JointGraph& joint = rounds_[step.round].joint;
    std::vector<OpId> ops;  // of the reductions
    int64_t results = 0;
    for (const NodeId id : kernel.nodes) {
      const Node& node = joint.node(id);
      if (node.kind != NodeKind::reduction) continue;
      const bool normalizes = op_class(eager_.name(eager_.op(node.op))) == OpClass::normalization &&
                              !is_backward(eager_.name(eager_.op(node.op)));
      const bool second = std::find(ops.begin(), ops.end(), node.op) != ops.end();
      ops.push_back(node.op);
      results += normalizes && second ? 2 : 1;
    }
    return std::max<int64_t>(results, 1);
  }

  // Pieces first, in a buffer of their own, and then the kernels that put them together.
  void emit_in_pieces(const Step& step, std::span<const TensorId> inputs, std::span<const TensorId> outputs) {
    const Kernel& kernel = *step.kernel;
    const int64_t pieces[] = {kernel.elements * kernel.pieces};
    const int64_t all[] = {pieces[0] * partial_results(step, kernel)};
    const int64_t strides[] = {1};
    const StorageId buffer = to_.add_storage(Bytes(all[0] * static_cast<int64_t>(size_of(DType::float32))));
    const TensorId partial[] = {to_.add_tensor(buffer, DType::float32, all, strides)};
    Kernel part = {.kind = kernel.kind,
                   .nodes = kernel.nodes,
                   .inlined = kernel.inlined,
                   .elements = pieces[0],
                   .reduced = std::max<int64_t>(kernel.reduced / kernel.pieces, 1),
                   .inner = kernel.inner};
    add_kernel(step, kReduction, part, inputs, partial);
    part.nodes.clear();
    part.inlined.clear();
    part.elements = kernel.elements;
    part.reduced = kernel.pieces;
    const int64_t each[] = {all[0] / kernel.further};
    const TensorId own[] = {to_.add_tensor(buffer, DType::float32, each, strides)};
    for (int i = 0; i < kernel.further; ++i) {
      const bool last = i + 1 == kernel.further;
      const size_t first = std::min<size_t>(static_cast<size_t>(i), outputs.size());
      const size_t count = last ? outputs.size() - first : std::min<size_t>(outputs.size() - first, 1);
      add_kernel(step, kReduction, part, own, outputs.subspan(first, count));
    }
    passing_.emplace_back(buffer, to_.op_count());
  }

  // A row of as many elements as are touched, and no more than there are.
  TensorId flat(const Step& step, const Read& read) {
    const Value& known = value(step, read.value);
    const int64_t elements[] = {std::min(read.elements, known.elements)};
    const int64_t strides[] = {1};
    return to_.add_tensor(place_of(step, read.value), known.dtype, elements, strides);
  }

  static std::string trimmed(std::string_view name) {
    std::string_view base = base_name(name);
    while (base.starts_with('_')) base.remove_prefix(1);
    while (base.ends_with('_')) base.remove_suffix(1);
    return std::string(base);
  }
  // What is elementwise of a product: the gradient of logits that nobody reads and where it is added, casts, sizes filled up.
  static std::string beside_product(const Node& node) {
    if (node.reads.empty()) return "zeros";
    if (node.reads.size() > 1) return "add";
    return node.elements == node.reads.front().elements ? "to_copy" : "constant_pad_nd";
  }
  std::string ops_of(const Kernel& kernel, const JointGraph& joint) const {
    std::vector<std::string> names;
    std::vector<NodeId> nodes = kernel.nodes;
    nodes.insert(nodes.end(), kernel.inlined.begin(), kernel.inlined.end());
    std::sort(nodes.begin(), nodes.end());
    for (const NodeId id : nodes) {
      const Node& node = joint.node(id);
      const std::string& op = eager_.name(eager_.op(node.op));
      std::string name = op_class(op) == OpClass::gemm ? beside_product(node) : trimmed(op);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    }
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  }

  // Convolutions copy images to a place of their own first that are part of others, such as some of their channels, and gradients that do
  // not lie as their images do.
  TensorId copied(const Step& step, TensorId id, bool plain) {
    const Tensor from = to_.graph().tensor(id);
    const Shape shape(to_.graph().shape(id).begin(), to_.graph().shape(id).end());
    const StorageId place = to_.add_storage(to_.graph().bytes_of(id));
    const Shape strides(to_.graph().strides(id).begin(), to_.graph().strides(id).end());
    const TensorId whole =
        plain ? to_.add_tensor(place, from.dtype, shape, strides) : to_.add_tensor(place, from.dtype, shape);
    const TensorId inputs[] = {plain ? to_.add_tensor(from.storage, from.dtype, shape) : id};
    const TensorId outputs[] = {whole};
    to_.add_op({.name = "aten.clone.default", .phase = step.phase, .inputs = inputs, .outputs = outputs});
    parts_.inside.push_back(true);
    return whole;
  }

  void emit_library(size_t at) {
    const Step& step = steps_[at];
    const Node& node = rounds_[step.round].joint.node(step.kernel->nodes.front());
    const Op& op = eager_.op(node.op);
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
    std::vector<StorageId> copies;
    const bool convolves = op_class(eager_.name(op)) == OpClass::convolution;
    for (size_t i = 0; i < std::min<size_t>(node.reads.size(), op.input_count); ++i) {
      inputs.push_back(as_laid_out(step, op, eager_.inputs(op)[i], node.reads[i].value));
      const bool part = node.reads[i].elements < value(step, node.reads[i].value).elements;
      const bool plain = node.reads[i].across;
      if (!convolves || !(part || plain) || eager_.shape(eager_.inputs(op)[i]).size() <= 2) continue;
      inputs.back() = copied(step, inputs.back(), plain);
      copies.push_back(to_.graph().tensor(inputs.back()).storage);
    }
    for (size_t i = 0; i < node.makes.size(); ++i) {
      place_made(at, node.makes[i]);
      outputs.push_back(as_laid_out(step, op, eager_.outputs(op)[i], node.makes[i]));
    }
    if (base_name(eager_.name(op)) == "convolution_backward" && gives_bias_gradient(eager_, op)) {
      Attributes attributes = {{"bias_sizes", Shape{0}},
                               {"output_mask", std::vector<bool>{outputs.size() > 1, true, false}}};
      for (const auto& [name, value] : eager_.attributes(op).entries()) {
        if (attributes.find(name) == nullptr) attributes.set(name, value);
      }
      copy_op(op, step.phase, inputs, outputs, attributes);
    } else {
      copy_op(op, step.phase, inputs, outputs, eager_.attributes(op));
    }
    parts_.inside.push_back(true);
    for (const StorageId copy : copies) passing_.emplace_back(copy, to_.op_count());
  }

  // Inductor gives most convolutions of images their channels last, whatever the model does, and pads products of 16 bits to
  // multiples of eight.
  TensorId as_laid_out(const Step& step, const Op& op, TensorId id, ValueId read) {
    const StorageId place = place_of(step, read);
    const DType dtype = value(step, read).dtype;
    const std::span<const int64_t> shape = eager_.shape(id);
    const std::string_view base = base_name(eager_.name(op));
    const OpClass cls = op_class(eager_.name(op));
    if (cls == OpClass::convolution && shape.size() == 4 && rounds_[step.round].round.channels_last) {
      const int64_t strides[] = {shape[1] * shape[2] * shape[3], 1, shape[1] * shape[3], shape[1]};
      const int64_t needed = eager_.element_count(id) * size_of(dtype);
      if (to_.graph().storage(place).bytes.value >= needed) return to_.add_tensor(place, dtype, shape, strides);
    }
    const bool product = base == "mm" || base == "addmm" || base == "bmm";
    if (product && size_of(dtype) == 2 && shape.size() > 1) {
      Shape padded(shape.begin(), shape.end());
      for (size_t i = padded.size() - 2; i < padded.size(); ++i) padded[i] = padded_size(padded[i]);
      int64_t elements = 1;
      for (const int64_t extent : padded) elements *= extent;
      // Of a product that is not padded the value is as the eager op saw it.
      const bool is_padded_here = elements != eager_.element_count(id) && elements == value(step, read).elements;
      if (is_padded_here) return to_.add_tensor(place, dtype, padded);
    }
    return fitting(id, place, dtype);
  }

  // The tensor as the library saw it; of a value whose storage is smaller than the one it viewed, without strides.
  TensorId fitting(TensorId id, StorageId place, DType dtype) {
    const bool whole = to_.graph().storage(place).bytes >= eager_.storage(eager_.tensor(id).storage).bytes;
    if (whole && dtype == eager_.tensor(id).dtype) return tensor(id, place);
    return to_.add_tensor(place, dtype, eager_.shape(id));
  }

  void emit_op(size_t at) {
    const Op& op = eager_.op(OpId(steps_[at].op));
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
    for (const TensorId id : eager_.inputs(op)) inputs.push_back(tensor(id, outside(id)));
    for (const TensorId id : eager_.outputs(op)) outputs.push_back(tensor(id, outside(id)));
    for (const TensorId id : inputs) touched_[to_.graph().tensor(id).storage.value] = at;
    for (const TensorId id : outputs) touched_[to_.graph().tensor(id).storage.value] = at;
    copy_op(op, op.phase, inputs, outputs, eager_.attributes(op));
    parts_.inside.push_back(false);
  }
  void copy_op(const Op& op, Phase phase, std::span<const TensorId> inputs, std::span<const TensorId> outputs,
               const Attributes& attributes) {
    to_.add_op({.name = eager_.name(op),
                .phase = phase,
                .module = eager_.module(op),
                .inputs = inputs,
                .outputs = outputs,
                .attributes = &attributes,
                .sequence = op.sequence,
                .autograd_node = eager_.names()[op.autograd_node]});
  }

  void free_storages() {
    std::unordered_map<uint32_t, size_t> end;
    for (const auto& [storage, step] : ends_) {
      if (!stays_.contains(storage.value)) end[storage.value] = std::max(end[storage.value], step);
    }
    for (size_t pass = 0; pass < places_.size(); ++pass) {
      for (size_t i = 0; i < places_[pass].size(); ++i) {
        const Value& value = rounds_[pass / 2].joint.values[i];
        const StorageId place = places_[pass][i];
        if (!place.valid() || stays_.contains(place.value)) continue;
        if (!value.made_by.valid() || value.forward_result || value.backward_result) {
          const auto known = end.find(place.value);
          if (known != end.end()) known->second = std::max(known->second, last_use_[pass][i] + 1);
          continue;
        }
        size_t& last = end[place.value];
        last = std::max(last, last_use_[pass][i] + 1);
      }
    }
    for (auto& [storage, step] : end) {
      if (const auto known = touched_.find(storage); known != touched_.end()) step = std::max(step, known->second + 1);
    }
    for (const auto& [storage, step] : end)
      to_.mark_freed(StorageId(storage), OpId(first_op_[std::min(step, steps_.size())]));
    for (const auto& [storage, op] : passing_) to_.mark_freed(storage, OpId(op));
  }

  const Graph& eager_;
  const std::vector<CompiledRound>& rounds_;
  CompiledParts& parts_;
  GraphBuilder to_;
  std::vector<Step> steps_;
  std::vector<size_t> reach_;                       // by step: the last op of the eager iteration that has begun
  std::unordered_map<uint32_t, size_t> touched_;    // by storage: the last step outside of compiled graphs that has it
  std::vector<StorageId> roots_;                    // by storage of the eager iteration: where it is now
  std::vector<std::vector<StorageId>> places_;      // by pass and value
  std::vector<std::vector<size_t>> last_use_;       // by pass and value: a step
  std::vector<std::pair<StorageId, size_t>> ends_;  // dies before the step
  std::vector<std::pair<StorageId, size_t>> passing_;  // dies before the op of the new iteration
  std::unordered_set<uint32_t> stays_;  // storages that were handed on to what lives beyond the iteration
  std::vector<size_t> first_op_;        // by step; one more for the end
  std::vector<size_t> pass_of_op_;
};

// Where the passes stand, and what they are given. `pass_of`: by op, which it belongs to.
std::vector<CompiledParts::Pass> passes_of(const Graph& graph, const std::vector<bool>& inside,
                                           const std::vector<size_t>& pass_of) {
  std::vector<bool> known(graph.storages().size());  // made by a compiled graph, or always at the same place
  for (size_t i = 0; i < known.size(); ++i) {
    const Root root = graph.storages()[i].root;
    known[i] = root != Root::none && root != Root::input;
  }
  std::vector<CompiledParts::Pass> passes;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    if (!inside[i]) continue;
    const Op& op = graph.ops()[i];
    const bool begins = i == 0 || !inside[i - 1] || pass_of[i] != pass_of[i - 1];
    if (begins) passes.push_back({.first = OpId(i), .end = {}, .given = {}});
    passes.back().end = OpId(i + 1);
    for (const TensorId id : graph.inputs(op)) {
      const StorageId storage = graph.tensor(id).storage;
      if (!known[storage.value]) passes.back().given.push_back(storage);
      known[storage.value] = true;
    }
    for (const TensorId id : graph.outputs(op)) known[graph.tensor(id).storage.value] = true;
  }
  return passes;
}

// Graphs that run as several pieces were compiled once.
void count_graphs_once(const Graph& eager, const DynamoTrace& dynamo, CompiledParts& parts) {
  int64_t pieces = 0;
  for (const Op& op : eager.ops()) pieces = std::max<int64_t>(pieces, op.piece);
  const int64_t repeated = 2 * (pieces - dynamo.graphs);
  if (repeated <= 0 || repeated >= parts.graphs) return;
  parts.nodes = parts.nodes * (parts.graphs - repeated) / parts.graphs;
  parts.graphs -= repeated;
}

Error waiting(const std::vector<GraphBreak>& breaks) {
  const std::string module = breaks.empty() ? std::string() : breaks.front().module;
  return Error{
      "torch.compile would break the graph in pieces that wait for one another, and how these run is not predicted",
      module.empty() ? "outside of any module" : "first in module " + module,
      "leave out --compile; in bfloat16 products of experts do not break it"};
}

}  // namespace

bool is_generated(std::string_view op_name) { return op_name.starts_with("inductor."); }

Status check_setup(const TrainingSetup& setup) {
  const auto refuse = [](const std::string& what, std::string where) {
    return Error{what + " is not predicted of a compiled model", std::move(where),
                 "leave it out, or leave out --compile"};
  };
  if (setup.checkpointing != Checkpointing::none) return refuse("activation checkpointing", "--checkpoint");
  if (setup.quantize.any()) return refuse("training on quantized weights", "--quantize");
  if (setup.precision == Precision::amp_fp8) return refuse("training with products in fp8", "--precision amp_fp8");
  if (setup.loop != TrainingLoop::plain) return refuse("a library's training loop", "--loop");
  if (setup.accumulate > 1 && launches_graphs(setup.compile)) {
    return Error{
        "PyTorch fails there: the CUDA graph of a micro-batch overwrites the gradients of the one before "
        "(pytorch/pytorch#169545)",
        "--accumulate with --compile=" + std::string(forerun::name_of(setup.compile)),
        "take --compile=default or --compile=max-autotune-no-cudagraphs"};
  }
  return {};
}

std::optional<DType> autocast_of(Precision precision) {
  if (precision == Precision::amp_bf16) return DType::bfloat16;
  return precision == Precision::amp_fp16 ? std::optional(DType::float16) : std::nullopt;
}

Result<CompiledIteration> compiled_iteration(const Graph& eager, bool loss_inside, std::optional<DType> autocast,
                                             const DynamoTrace* dynamo) {
  if (dynamo != nullptr && !dynamo->problem.empty()) dynamo = nullptr;
  CompiledIteration made;
  std::vector<Round> rounds = rounds_of(eager, loss_inside, autocast, dynamo, made.parts.breaks);
  std::vector<CompiledRound> compiled;
  compiled.reserve(rounds.size());
  CompiledParts again;  // what further micro-batches run is compiled already
  for (Round& round : rounds) {
    CompiledParts& found = round.first == rounds.front().first ? made.parts : again;
    found.loss_inside = found.loss_inside || round.loss_inside;
    compiled.push_back(compiled_round(eager, std::move(round), found));
  }
  if (dynamo != nullptr) count_graphs_once(eager, *dynamo, made.parts);
  Emitter emitter(eager, compiled, made.parts);
  std::optional<Graph> emitted = emitter.emitted();
  if (!emitted) return waiting(made.parts.breaks);
  made.graph = std::move(*emitted);
  made.parts.passes = passes_of(made.graph, made.parts.inside, emitter.pass_of_op());
  if (const Status status = verify(made.graph); !status.ok()) return status.error().within("the compiled iteration");
  return made;
}

}  // namespace forerun::compile
