#include "compile/compiled_iteration.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "compile/arithmetic.h"
#include "compile/fusion.h"
#include "compile/joint_graph.h"
#include "compile/layout_rule.h"
#include "compile/mix_order.h"
#include "compile/partition.h"
#include "derive/op_class.h"
#include "graph/graph_builder.h"

namespace forerun::compile {
namespace {

// What runs, in order: a kernel of a round, or an op of the eager iteration.
struct Step {
  const Kernel* kernel = nullptr;
  size_t round = 0;
  size_t op = 0;  // of the eager iteration: itself, or where the pass begins
  Phase phase = Phase::forward;
};

struct CompiledRound {
  Round round;
  JointGraph joint;
  std::vector<bool> kept;
  std::vector<Kernel> forward;
  std::vector<Kernel> backward;
  bool channels_last = false;
};

CompiledRound compiled_round(const Graph& eager, Round round, CompiledParts& found) {
  CompiledRound made{.round = std::move(round), .joint = {}, .kept = {}, .forward = {}, .backward = {}};
  made.joint = joint_graph(eager, made.round);
  made.channels_last = lays_channels_last(eager, made.round);
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
  made.forward = fuse(joint, parts.in_forward, stored);
  for (size_t i = 0; i < stored.size(); ++i) stored[i] = joint.values[i].backward_result;
  made.backward = fuse(joint, parts.in_backward, stored);
  for (size_t i = 0; i < joint.nodes.size(); ++i) {
    found.nodes += static_cast<int64_t>(parts.in_forward[i]) + static_cast<int64_t>(parts.in_backward[i]);
    if (parts.in_forward[i] && parts.in_backward[i]) ++found.computed_again;
  }
  found.graphs += 2;
  made.kept = std::move(parts.kept);
  return made;
}

std::string_view name_of(const JointGraph& joint, const Kernel& kernel) {
  if (kernel.kind == NodeKind::reduction) return kReduction;
  return joint.node(kernel.nodes.front()).has(kScatters) ? kScatter : kPointwise;
}

class Emitter {
 public:
  Emitter(const Graph& eager, const std::vector<CompiledRound>& rounds, CompiledParts& parts)
      : eager_(eager), rounds_(rounds), parts_(parts), roots_(eager.storages().size()) {
    for (const CompiledRound& round : rounds) {
      places_.emplace_back(round.joint.values.size());
      last_use_.emplace_back(round.joint.values.size());
    }
  }

  Graph emitted() {
    plan();
    find_last_uses();
    add_roots();
    for (size_t i = 0; i < steps_.size(); ++i) {
      first_op_.push_back(to_.op_count());
      if (steps_[i].kernel != nullptr) {
        emit_kernel(i);
      } else {
        emit_op(i);
      }
    }
    first_op_.push_back(to_.op_count());
    free_storages();
    for (const TensorId id : eager_.parameters()) to_.add_parameter(tensor(id, outside(id)));
    to_.set_parameter_count(eager_.parameter_count());
    if (eager_.parameters().empty()) to_.set_parameter_tensors(eager_.parameter_tensors());
    return to_.finish();
  }

 private:
  // Compiled passes run where their first op stood; what stood among their ops runs behind them.
  void plan() {
    size_t op = 0;
    for (size_t r = 0; r < rounds_.size(); ++r) {
      const CompiledRound& round = rounds_[r];
      bool forward = false;
      bool backward = false;
      for (; op < round.round.end; ++op) {
        const Place place = round.round.places[op - round.round.first];
        if (place == Place::forward && !forward) add_pass(round.forward, r, op, Phase::forward);
        if (place == Place::backward && !backward) add_pass(round.backward, r, op, Phase::backward);
        forward = forward || place == Place::forward;
        backward = backward || place == Place::backward;
        if (place == Place::outside) steps_.push_back({.op = op, .phase = eager_.ops()[op].phase});
      }
    }
    for (; op < eager_.op_count(); ++op) steps_.push_back({.op = op, .phase = eager_.ops()[op].phase});
  }
  void add_pass(const std::vector<Kernel>& kernels, size_t round, size_t op, Phase phase) {
    for (const Kernel& kernel : kernels)
      steps_.push_back({.kernel = &kernel, .round = round, .op = op, .phase = phase});
  }

  void find_last_uses() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      if (step.kernel == nullptr) continue;
      for (const Read& read : step.kernel->reads) last_use_[step.round][read.value.value] = i;
      for (const ValueId made : step.kernel->writes) last_use_[step.round][made.value] = i;
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
    const auto found = std::lower_bound(steps_.begin(), steps_.end(), op,
                                        [](const Step& step, size_t value) { return step.op < value; });
    return static_cast<size_t>(found - steps_.begin());
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

  StorageId place_of(const Step& step, ValueId id) {
    StorageId& place = places_[step.round][id.value];
    const Value& known = value(step, id);
    if (!place.valid() && known.given.valid()) place = outside(known.tensor);
    if (!place.valid()) place = to_.add_storage(Bytes(std::max<int64_t>(bytes_of(known), 1)));
    return place;
  }
  [[nodiscard]] int64_t bytes_of(const Value& value) const {
    if (!value.tensor.valid() || eager_.tensor(value.tensor).dtype != value.dtype) return value.bytes();
    return std::max(value.bytes(), eager_.storage(eager_.tensor(value.tensor).storage).bytes.value);
  }

  // A result is where outside ops look for it; it ends as it did there, and not before its last reader here.
  StorageId place_result(const Step& step, ValueId id) {
    const Value& made = value(step, id);
    if (!(made.forward_result || made.backward_result) || !made.tensor.valid()) return {};
    const StorageId place = outside(made.tensor);
    places_[step.round][id.value] = place;
    return place;
  }

  void emit_kernel(size_t at) {
    const Step& step = steps_[at];
    if (step.kernel->kind == NodeKind::library) return emit_library(at);
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
    for (const Read& read : step.kernel->reads) inputs.push_back(flat(step, read));
    for (const ValueId id : step.kernel->writes) {
      if (!place_result(step, id).valid()) write_over(at, id);
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
    const Arithmetic work = arithmetic_of(eager_, joint, kernel);
    if (work.random > 0) attributes.set("random", static_cast<int64_t>(work.random));
    if (work.erf > 0) attributes.set("erf", static_cast<int64_t>(work.erf));
    if (work.exp > 0) attributes.set("exp", static_cast<int64_t>(work.exp));
    if (work.trig > 0) attributes.set("trig", static_cast<int64_t>(work.trig));
    to_.add_op({.name = name,
                .phase = step.phase,
                .module = eager_.module(eager_.op(joint.node(step.kernel->nodes.front()).op)),
                .inputs = inputs,
                .outputs = outputs,
                .attributes = &attributes});
    parts_.inside.push_back(true);
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
    const Kernel last = {
        .kind = NodeKind::reduction, .nodes = {}, .elements = kernel.reduced, .reduced = blocks, .inner = false};
    for (const TensorId sum : sums) {
      const TensorId partial[] = {to_.add_tensor(buffer, DType::float32, each, strides)};
      const TensorId made[] = {sum};
      add_kernel(step, kReduction, last, partial, made);
      if (to_.graph().tensor(sum).dtype != DType::float32) add_kernel(step, kPointwise, last, made, made);
    }
    passing_.emplace_back(buffer, to_.op_count());
  }

  // Pieces first, in a buffer of their own, and then the kernels that put them together.
  void emit_in_pieces(const Step& step, std::span<const TensorId> inputs, std::span<const TensorId> outputs) {
    const Kernel& kernel = *step.kernel;
    const int64_t pieces[] = {kernel.elements * kernel.pieces};
    const int64_t strides[] = {1};
    const StorageId buffer = to_.add_storage(Bytes(pieces[0] * static_cast<int64_t>(size_of(DType::float32))));
    const TensorId partial[] = {to_.add_tensor(buffer, DType::float32, pieces, strides)};
    Kernel part = {.kind = kernel.kind,
                   .nodes = kernel.nodes,
                   .elements = pieces[0],
                   .reduced = std::max<int64_t>(kernel.reduced / kernel.pieces, 1),
                   .inner = kernel.inner};
    add_kernel(step, kReduction, part, inputs, partial);
    part.nodes.clear();
    part.elements = kernel.elements;
    part.reduced = kernel.pieces;
    for (int i = 0; i < kernel.further; ++i) {
      const bool last = i + 1 == kernel.further;
      const size_t first = std::min<size_t>(static_cast<size_t>(i), outputs.size());
      const size_t count = last ? outputs.size() - first : std::min<size_t>(outputs.size() - first, 1);
      add_kernel(step, kReduction, part, partial, outputs.subspan(first, count));
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

  // Takes the place of an input that ends here, where both are as large.
  void write_over(size_t at, ValueId id) {
    const Step& step = steps_[at];
    StorageId& place = places_[step.round][id.value];
    if (place.valid()) return;
    for (const Read& read : step.kernel->reads) {
      const Value& input = value(step, read.value);
      const StorageId old = places_[step.round][read.value.value];
      if (!old.valid() || !input.made_by.valid() || input.forward_result || input.backward_result) continue;
      if (input.tangent || input.returned) continue;  // the caller's
      if (last_use_[step.round][read.value.value] != at || taken_over(old, at)) continue;
      if (bytes_of(input) != bytes_of(value(step, id))) continue;
      place = old;
      overwritten_[old.value] = at;
      return;
    }
  }
  [[nodiscard]] bool taken_over(StorageId storage, size_t at) const {
    const auto found = overwritten_.find(storage.value);
    return found != overwritten_.end() && found->second == at;
  }

  static std::string trimmed(std::string_view name) {
    std::string_view base = base_name(name);
    while (base.starts_with('_')) base.remove_prefix(1);
    while (base.ends_with('_')) base.remove_suffix(1);
    return std::string(base);
  }
  std::string ops_of(const Kernel& kernel, const JointGraph& joint) const {
    std::vector<std::string> names;
    for (const NodeId node : kernel.nodes) {
      const std::string& op = eager_.name(eager_.op(joint.node(node).op));
      if (op_class(op) == OpClass::gemm) continue;  // it only adds the gradient of the logits before that op
      std::string name = trimmed(op);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    }
    if (names.empty()) return "zeros";
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  }

  void emit_library(size_t at) {
    const Step& step = steps_[at];
    const Node& node = rounds_[step.round].joint.node(step.kernel->nodes.front());
    const Op& op = eager_.op(node.op);
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
    for (size_t i = 0; i < node.reads.size(); ++i) {
      inputs.push_back(as_laid_out(step, op, eager_.inputs(op)[i], place_of(step, node.reads[i].value)));
    }
    for (size_t i = 0; i < node.makes.size(); ++i) {
      if (!place_result(step, node.makes[i]).valid()) place_of(step, node.makes[i]);
      outputs.push_back(as_laid_out(step, op, eager_.outputs(op)[i], place_of(step, node.makes[i])));
    }
    copy_op(op, step.phase, inputs, outputs);
    parts_.inside.push_back(true);
  }

  TensorId as_laid_out(const Step& step, const Op& op, TensorId id, StorageId place) {
    const std::span<const int64_t> shape = eager_.shape(id);
    const OpClass cls = op_class(eager_.name(op));
    if (cls == OpClass::convolution && shape.size() == 4 && rounds_[step.round].channels_last) {
      const int64_t strides[] = {shape[1] * shape[2] * shape[3], 1, shape[1] * shape[3], shape[1]};
      const int64_t needed = eager_.element_count(id) * size_of(eager_.tensor(id).dtype);
      if (to_.graph().storage(place).bytes.value >= needed)
        return to_.add_tensor(place, eager_.tensor(id).dtype, shape, strides);
    }
    if (shape.size() > 1 && pads_product(eager_, op)) {
      Shape padded(shape.begin(), shape.end());
      for (size_t i = padded.size() - 2; i < padded.size(); ++i)
        padded[i] = padded[i] > 8 ? (padded[i] + 7) / 8 * 8 : padded[i];
      if (!std::equal(padded.begin(), padded.end(), shape.begin()))
        return to_.add_tensor(place, eager_.tensor(id).dtype, padded);
    }
    return fitting(id, place);
  }

  // The tensor as the library saw it; of a value whose storage is smaller than the one it viewed, without strides.
  TensorId fitting(TensorId id, StorageId place) {
    const bool whole = to_.graph().storage(place).bytes >= eager_.storage(eager_.tensor(id).storage).bytes;
    return whole ? tensor(id, place) : to_.add_tensor(place, eager_.tensor(id).dtype, eager_.shape(id));
  }

  void emit_op(size_t at) {
    const Op& op = eager_.op(OpId(steps_[at].op));
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
    for (const TensorId id : eager_.inputs(op)) inputs.push_back(tensor(id, outside(id)));
    for (const TensorId id : eager_.outputs(op)) outputs.push_back(tensor(id, outside(id)));
    copy_op(op, op.phase, inputs, outputs);
    parts_.inside.push_back(false);
  }
  void copy_op(const Op& op, Phase phase, std::span<const TensorId> inputs, std::span<const TensorId> outputs) {
    to_.add_op({.name = eager_.name(op),
                .phase = phase,
                .module = eager_.module(op),
                .inputs = inputs,
                .outputs = outputs,
                .attributes = &eager_.attributes(op),
                .sequence = op.sequence,
                .autograd_node = eager_.names()[op.autograd_node]});
  }

  void free_storages() {
    std::unordered_map<uint32_t, size_t> end;
    for (const auto& [storage, step] : ends_) end[storage.value] = std::max(end[storage.value], step);
    for (size_t r = 0; r < rounds_.size(); ++r) {
      for (size_t i = 0; i < places_[r].size(); ++i) {
        const Value& value = rounds_[r].joint.values[i];
        const StorageId place = places_[r][i];
        if (!place.valid()) continue;
        if (!value.made_by.valid() || value.forward_result || value.backward_result) {
          const auto known = end.find(place.value);
          if (known != end.end()) known->second = std::max(known->second, last_use_[r][i] + 1);
          continue;
        }
        size_t& last = end[place.value];
        last = std::max(last, last_use_[r][i] + 1);
      }
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
  std::vector<StorageId> roots_;                       // by storage of the eager iteration: where it is now
  std::vector<std::vector<StorageId>> places_;         // by round and value
  std::vector<std::vector<size_t>> last_use_;          // by round and value: a step
  std::vector<std::pair<StorageId, size_t>> ends_;     // dies before the step
  std::vector<std::pair<StorageId, size_t>> passing_;  // dies before the op of the new iteration
  std::vector<size_t> first_op_;                       // by step; one more for the end
  std::unordered_map<uint32_t, size_t> overwritten_;   // by storage: the step that last wrote over it
};

// Where the passes stand, and what they are given.
std::vector<CompiledParts::Pass> passes_of(const Graph& graph, const std::vector<bool>& inside) {
  std::vector<bool> known(graph.storages().size());  // made by a compiled graph, or always at the same place
  for (size_t i = 0; i < known.size(); ++i) {
    const Root root = graph.storages()[i].root;
    known[i] = root != Root::none && root != Root::input;
  }
  std::vector<CompiledParts::Pass> passes;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    if (!inside[i]) continue;
    const Op& op = graph.ops()[i];
    const bool begins = i == 0 || !inside[i - 1] || op.phase != graph.ops()[i - 1].phase;
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

Result<CompiledIteration> compiled_iteration(const Graph& eager, bool loss_inside) {
  Result<std::vector<Round>> rounds = rounds_of(eager, loss_inside);
  if (!rounds) return rounds.error();
  CompiledIteration made;
  made.parts.loss_inside = loss_inside;
  std::vector<CompiledRound> compiled;
  compiled.reserve(rounds->size());
  for (Round& round : *rounds) compiled.push_back(compiled_round(eager, std::move(round), made.parts));
  made.graph = Emitter(eager, compiled, made.parts).emitted();
  made.parts.passes = passes_of(made.graph, made.parts.inside);
  if (const Status status = verify(made.graph); !status.ok()) return status.error().within("the compiled iteration");
  return made;
}

}  // namespace forerun::compile
