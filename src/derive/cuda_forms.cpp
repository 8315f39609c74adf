#include "derive/cuda_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "derive/generic_ops.h"
#include "derive/view_op.h"

namespace forerun::derive {
namespace {

// A forward op that was replaced, until its backward op comes.
struct Replaced {
  std::vector<Edge> results;  // by output
  std::vector<std::shared_ptr<Value>> gradients;
  bool used = false;
};

// Where a recorded tensor really lies, while that is not where the record says.
struct Place {
  Ref<StorageToken> storage;
  Shape sizes, strides;
};

bool same_layout(std::span<const int64_t> sizes, std::span<const int64_t> a, const Shape& b) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1 && (i >= a.size() || a[i] != b[i])) return false;
  }
  return true;
}

class Replay {
 public:
  // Without a target ops have their CUDA forms already.
  Replay(const Graph& from, const DispatchTarget* target)
      : from_(from),
        target_(target),
        storages_(from.storages().size()),
        tensors_(from.tensors().size()),
        attributes_(),
        deaths_(from.op_count() + 1) {}

  Result<Graph> run() {
    take_over_roots();
    for (size_t i = 0; i < from_.storages().size(); ++i) {
      const OpId freed = from_.storages()[i].freed_before;
      if (freed.valid() && freed.value < deaths_.size()) deaths_[freed.value].push_back(StorageId(i));
    }
    pair_ops();
    find_last_uses();
    for (size_t i = 0; i < from_.op_count(); ++i) {
      for (const StorageId id : deaths_[i]) release(id);
      if (Status status = replay(i); !status.ok()) return error_at(i, status.error());
      forget_places(i);
    }
    for (const StorageId id : deaths_.back()) release(id);
    for (const TensorId id : from_.parameters()) tracer_.graph().add_parameter(tensor(id));
    for (const TensorId id : from_.results()) tracer_.graph().add_result(tensor(id));
    tracer_.graph().set_parameter_count(from_.parameter_count());
    tracer_.graph().set_parameter_tensors(from_.parameter_tensors());
    Graph graph = tracer_.finish();
    if (Status status = verify(graph); !status.ok()) return status.error();
    return graph;
  }

 private:
  Error error_at(size_t op, const Error& error) const {
    return error.within(fmt::format("op {} ({})", op, from_.name(from_.ops()[op])));
  }
  static Error bad(std::string what) { return {std::move(what), "", "capture the model again with forerun.capture"}; }

  // --- storages and tensors

  void take_over_roots() {
    for (size_t i = 0; i < from_.storages().size(); ++i) {
      const Storage& storage = from_.storages()[i];
      if (storage.root == Root::none) continue;
      tracer_.graph().mark_root(token(StorageId(i))->id(), storage.root, from_.names()[storage.root_name]);
    }
  }

  const Ref<StorageToken>& token(StorageId id) {
    auto& held = storages_[id.value];
    if (!held) held = tracer_.storage(from_.storage(id).bytes, from_.storage(id).on_gpu);
    return held;
  }

  void release(StorageId id) {
    const auto& held = storages_[id.value];
    if (held && from_.storage(id).root != Root::none) {
      tracer_.graph().mark_freed(held->id(), OpId(tracer_.graph().op_count()));
    }
    storages_[id.value] = nullptr;
  }

  TensorId tensor(TensorId id) {
    if (places_.contains(id.value)) return value(id)->id;
    TensorId& known = tensors_[id.value];
    if (!known.valid()) {
      const Tensor& t = from_.tensor(id);
      known = tracer_.graph().add_tensor(token(t.storage)->id(), t.dtype, from_.shape(id), from_.strides(id));
    }
    return known;
  }

  Value value(TensorId id) {
    const Tensor& t = from_.tensor(id);
    if (const auto place = places_.find(id.value); place != places_.end()) {
      return tracer_.view_of(place->second.storage, t.dtype, place->second.sizes, place->second.strides);
    }
    const auto shape = from_.shape(id);
    const auto strides = from_.strides(id);
    Shape sizes(shape.begin(), shape.end());
    Shape steps = t.strides.valid() ? Shape(strides.begin(), strides.end()) : contiguous_strides(sizes);
    return tracer_.view_of(token(t.storage), t.dtype, std::move(sizes), std::move(steps));
  }

  Values values(std::span<const TensorId> ids) {
    Values list;
    for (const TensorId id : ids) list.push_back(value(id));
    return list;
  }

  // The recorded result is, from here on, the tensor that CUDA's op made.
  Status bind(TensorId id, const Value& made) {
    const Tensor& t = from_.tensor(id);
    const auto shape = from_.shape(id);
    if (t.dtype != made->dtype || !std::equal(shape.begin(), shape.end(), made->sizes.begin(), made->sizes.end())) {
      return bad("a result has another shape or type than its operands give");
    }
    auto& held = storages_[t.storage.value];
    if (held && held != made->storage) return bad("a result lies in a storage that exists already");
    held = made->storage;
    put(id, made);
    return {};
  }

  // --- results that lie in memory otherwise than recorded: the views and copies that follow depend on it

  void put(TensorId id, const Value& v) {
    const auto sizes = from_.shape(id);
    const bool as_recorded = storages_[from_.tensor(id).storage.value] == v->storage &&
                             from_.tensor(id).strides.valid() &&
                             std::equal(sizes.begin(), sizes.end(), v->sizes.begin(), v->sizes.end()) &&
                             same_layout(sizes, from_.strides(id), v->strides);
    if (as_recorded) {
      places_.erase(id.value);
    } else {
      places_[id.value] = {v->storage, v->sizes, v->strides};
    }
  }

  void find_last_uses() {
    last_use_.resize(from_.tensors().size());
    for (size_t i = 0; i < from_.op_count(); ++i) {
      for (const TensorId id : from_.inputs(from_.ops()[i])) last_use_[id.value] = i;
      for (const TensorId id : from_.outputs(from_.ops()[i])) last_use_[id.value] = i;
    }
  }

  void forget_places(size_t index) {
    if (places_.empty()) return;
    const Op& op = from_.ops()[index];
    for (const TensorId id : from_.inputs(op)) {
      if (last_use_[id.value] == index) places_.erase(id.value);
    }
    for (const TensorId id : from_.outputs(op)) {
      if (last_use_[id.value] == index) places_.erase(id.value);
    }
  }

  // Replays a view or copy of such a result; false: any other op.
  bool follow(size_t index) {
    const Op& op = from_.ops()[index];
    if (op.input_count != 1 || op.output_count != 1) return false;
    const TensorId in = from_.inputs(op)[0];
    if (!places_.contains(in.value)) return false;
    const Value v = value(in);
    const TensorId out = from_.outputs(op)[0];
    if (from_.name(op) == "aten.clone.default") return drop_copy(index, v);
    const Shape sizes(from_.shape(out).begin(), from_.shape(out).end());
    const ViewResult view = derive::view_of(from_.name(op), from_.attributes(op), *v, sizes);
    if (view.kind == ViewResult::unknown || from_.tensor(out).dtype != v->dtype) return false;
    if (view.kind == ViewResult::strided) {
      const Value result = tracer_.view_of(v->storage, v->dtype, sizes, view.strides);
      add_op(op, from_.name(op) == "aten._unsafe_view.default" ? "aten.view.default" : from_.name(op), v, result);
      put(out, result);
      return true;
    }
    const Value copy =
        tracer_.view_of(tracer_.storage(from_.bytes_of(in), true), v->dtype, v->sizes, contiguous_strides(v->sizes));
    const Value result = tracer_.view_of(copy->storage, v->dtype, sizes, contiguous_strides(sizes));
    const Attributes contiguous = {{"memory_format", std::string("contiguous_format")}};
    add_op(op, "aten.clone.default", v, copy, &contiguous);
    add_op(op, "aten._unsafe_view.default", copy, result);
    put(out, result);
    return true;
  }

  // A copy to contiguous memory that is not needed: the tensor is so already, or the view that follows can do without.
  bool drop_copy(size_t index, const Value& v) {
    const Op& op = from_.ops()[index];
    if (from_.attributes(op).get_string("memory_format") != "contiguous_format") return false;
    const TensorId out = from_.outputs(op)[0];
    const auto sizes = from_.shape(out);
    if (!std::equal(sizes.begin(), sizes.end(), v->sizes.begin(), v->sizes.end())) return false;
    if (!is_contiguous(*v) && !viewed_next(index, out, *v)) return false;
    auto& held = storages_[from_.tensor(out).storage.value];
    if (held) return false;
    held = v->storage;
    places_[out.value] = {v->storage, v->sizes, v->strides};
    return true;
  }

  bool viewed_next(size_t index, TensorId copy, const TensorState& v) const {
    if (index + 1 >= from_.op_count()) return false;
    const Op& next = from_.ops()[index + 1];
    if (from_.name(next) != "aten._unsafe_view.default" || next.input_count != 1 || next.output_count != 1 ||
        from_.inputs(next)[0] != copy) {
      return false;
    }
    const auto sizes = from_.shape(from_.outputs(next)[0]);
    return derive::view_of(from_.name(next), {}, v, Shape(sizes.begin(), sizes.end())).kind == ViewResult::strided;
  }

  // --- ops

  // Finds the forward op of each backward op, by the storage that only the two share: the last result, the last input.
  void pair_ops() {
    std::map<uint32_t, size_t> made_by;
    for (size_t i = 0; i < from_.op_count(); ++i) {
      const Op& op = from_.ops()[i];
      const GenericRule* rule = rule_of(op);
      if (rule == nullptr) continue;
      if (rule->forward == from_.name(op)) {
        if (op.output_count > 0) made_by[from_.tensor(from_.outputs(op).back()).storage.value] = i;
      } else if (op.input_count > 0) {
        const auto found = made_by.find(from_.tensor(from_.inputs(op).back()).storage.value);
        if (found == made_by.end()) continue;
        forward_of_[i] = found->second;
        backward_of_.emplace(found->second, i);
      }
    }
  }

  const GenericRule* rule_of(const Op& op) const {
    const GenericRule* rule = generic_rule(from_.name(op));
    return rule != nullptr && (target_ != nullptr || rule->backward.empty()) ? rule : nullptr;
  }

  Status replay(size_t index) {
    const Op& op = from_.ops()[index];
    const GenericRule* rule = rule_of(op);
    if (rule == nullptr) {
      if (!keeps_result(index) && !follow(index)) copy(op);
      return {};
    }
    return rule->forward == from_.name(op) ? replace_forward(index, *rule) : replace_backward(index, *rule);
  }

  void copy(const Op& op) {
    if (const std::optional<Bytes> reserve = missing_reserve(from_, op)) make_reserve(from_.outputs(op)[3], *reserve);
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
    for (const TensorId id : from_.inputs(op)) inputs.push_back(tensor(id));
    for (const TensorId id : from_.outputs(op)) outputs.push_back(tensor(id));
    add_op(op, from_.name(op), inputs, outputs, attributes_of(op));
  }

  void make_reserve(TensorId id, Bytes bytes) {
    auto& held = storages_[from_.tensor(id).storage.value];
    if (held) return;
    held = tracer_.storage(bytes, true);
    put(id, tracer_.view_of(held, DType::uint8, {bytes.value}, {1}));
  }

  AttributesId attributes_of(const Op& op) {
    auto [known, added] = attributes_.try_emplace(op.attributes.value);
    if (added) known->second = tracer_.graph().intern(from_.attributes(op));
    return known->second;
  }

  // Appends an op in the place of a recorded one.
  void add_op(const Op& op, std::string_view name, std::span<const TensorId> inputs, std::span<const TensorId> outputs,
              AttributesId attributes) {
    tracer_.graph().add_op({.name = name,
                            .phase = op.phase,
                            .module = from_.module(op),
                            .inputs = inputs,
                            .outputs = outputs,
                            .sequence = op.sequence,
                            .autograd_node = from_.names()[op.autograd_node],
                            .piece = op.piece},
                           attributes);
  }
  void add_op(const Op& op, std::string_view name, const Value& input, const Value& output,
              const Attributes* attributes = nullptr) {
    const AttributesId id = attributes != nullptr ? tracer_.graph().intern(*attributes) : attributes_of(op);
    add_op(op, name, {&input->id, 1}, {&output->id, 1}, id);
  }

  // Whether the op is the detach by which a replaced op keeps its result for the backward pass, or takes it back there:
  // CUDA's op brings its own.
  bool keeps_result(size_t index) const {
    const Op& op = from_.ops()[index];
    if (from_.name(op) != "aten.detach.default" || op.input_count != 1) return false;
    const TensorId kept = from_.inputs(op)[0];
    const auto is_result_of = [&](size_t forward) {
      const Op& made = from_.ops()[forward];
      return made.output_count > 0 && from_.outputs(made)[0] == kept && made.sequence == op.sequence;
    };
    if (index > 0 && backward_of_.contains(index - 1)) return is_result_of(index - 1);
    const auto next = forward_of_.find(index + 1);
    return next != forward_of_.end() && is_result_of(next->second) &&
           op.autograd_node == from_.ops()[index + 1].autograd_node;
  }

  Status replace_forward(size_t index, const GenericRule& rule) {
    const Op& op = from_.ops()[index];
    const auto backward = backward_of_.find(index);
    const bool taken_back = backward != backward_of_.end();
    const Values inputs = values(from_.inputs(op));
    DispatchTarget target = target_ != nullptr ? *target_ : DispatchTarget();
    if (target.masks != nullptr && rule.forward == "forerun.attention.default") {
      target.traced_masks = (*target.masks)[attention_calls_++ % target.masks->size()];
    }
    GenericCall call = {tracer_, target, inputs, from_.attributes(op), {}, second_is_parameter(op)};
    if (taken_back) {
      const Op& other = from_.ops()[backward->second];
      call.backward.emplace(GenericBackward{from_.attributes(other), other.output_count});
    }
    tracer_.stand_in(op, from_.module(op), taken_back);
    Result<GenericForm> form = rule.form(call);
    if (!form) return form.error();
    const auto outputs = from_.outputs(op);
    if (outputs.size() != form->results.size()) {
      return bad(fmt::format("{} outputs, expected {}", outputs.size(), form->results.size()));
    }
    Replaced& replaced = replaced_[index];
    replaced.gradients = std::move(form->gradients);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Value& made = form->results[i];
      if (!made) continue;
      if (Status status = bind(outputs[i], made); !status.ok()) return status;
      replaced.results.push_back(Tracer::edge_to(made));
    }
    return {};
  }

  bool second_is_parameter(const Op& op) const {
    return op.input_count > 1 && from_.storage(from_.tensor(from_.inputs(op)[1]).storage).root == Root::parameter;
  }

  Status replace_backward(size_t index, const GenericRule& rule) {
    const Op& op = from_.ops()[index];
    const auto forward = forward_of_.find(index);
    if (forward == forward_of_.end()) return bad("no forward op made what it reads last");
    Replaced& replaced = replaced_[forward->second];
    if (replaced.used) return bad("a second backward pass through one forward op cannot be mapped");
    replaced.used = true;
    const Result<std::vector<size_t>> seeds = rule.seeds(from_.attributes(op));
    if (!seeds) return seeds.error();
    if (seeds->size() > op.input_count || op.output_count != replaced.gradients.size()) {
      return bad(fmt::format("{} inputs and {} outputs do not fit its forward op", op.input_count, op.output_count));
    }
    if (Status status = run_backward(op, *seeds, replaced); !status.ok()) return status;
    const auto outputs = from_.outputs(op);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!*replaced.gradients[i]) return bad(fmt::format("output {} is no gradient of its forward op", i));
      if (Status status = bind(outputs[i], *replaced.gradients[i]); !status.ok()) return status;
    }
    replaced.gradients.clear();
    return {};
  }

  Status run_backward(const Op& op, const std::vector<size_t>& seeds, const Replaced& replaced) {
    std::vector<Edge> edges;
    Values gradients;
    for (size_t i = 0; i < seeds.size(); ++i) {
      if (seeds[i] >= replaced.results.size()) return bad("a gradient of a result that its forward op has not");
      const Edge& edge = replaced.results[seeds[i]];
      Value gradient = value(from_.inputs(op)[i]);
      if (edge.node == nullptr || gradient->sizes != edge.sizes || gradient->dtype != edge.dtype) {
        return bad(fmt::format("input {} is no gradient of a result of its forward op", i));
      }
      edges.push_back(edge);
      gradients.push_back(std::move(gradient));
    }
    tracer_.stand_in(op, from_.module(op), false);
    tracer_.backward(edges, std::move(gradients));
    return {};
  }

  const Graph& from_;
  const DispatchTarget* target_;
  size_t attention_calls_ = 0;  // replaced so far
  Tracer tracer_;
  std::vector<Ref<StorageToken>> storages_;            // by storage of `from_`, while it lives
  std::vector<TensorId> tensors_;                      // by tensor of `from_`
  std::map<uint32_t, AttributesId> attributes_;        // by attributes of `from_`
  std::vector<std::vector<StorageId>> deaths_;         // by op of `from_`
  std::map<size_t, size_t> forward_of_, backward_of_;  // ops of `from_` by each other
  std::map<size_t, Replaced> replaced_;                // by forward op of `from_`
  std::map<uint32_t, Place> places_;                   // by tensor of `from_`, up to its last use
  std::vector<size_t> last_use_;                       // by tensor of `from_`
};

}  // namespace

Result<Graph> to_cuda_forms(const Graph& generic, const DispatchTarget& target) {
  return Replay(generic, &target).run();
}

bool lacks_forms(const Graph& cuda) {
  return std::any_of(cuda.ops().begin(), cuda.ops().end(), [&](const Op& op) {
    const GenericRule* rule = generic_rule(cuda.name(op));
    return missing_reserve(cuda, op).has_value() || (rule != nullptr && rule->backward.empty());
  });
}

Result<Graph> with_forms(const Graph& cuda) { return Replay(cuda, nullptr).run(); }

}  // namespace forerun::derive
