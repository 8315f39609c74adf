#include "derive/tracer.h"

#include <algorithm>
#include <queue>

#include "derive/aten.h"

namespace forerun::derive {

Tracer::Tracer() : log_(Ref<FreeLog>::make()) {
  log_->freed = [this](StorageId id) {
    if (graph_.graph().storage(id).root == Root::none) graph_.mark_freed(id, OpId(graph_.op_count()));
  };
}

Tracer::~Tracer() { log_->freed = nullptr; }

Value Tracer::fresh(DType dtype, Shape sizes, Shape strides, bool on_gpu) {
  auto held = storage(Bytes(element_count(sizes) * size_of(dtype)), on_gpu);
  return view_of(std::move(held), dtype, std::move(sizes), std::move(strides));
}

Value Tracer::alias(const Value& of, DType dtype, Shape sizes, Shape strides) {
  Value v = view_of(of->storage, dtype, std::move(sizes), std::move(strides));
  v->base = of->base ? of->base : of;
  return v;
}

Ref<StorageToken> Tracer::storage(Bytes bytes, bool on_gpu) {
  made_bytes_ += static_cast<double>(bytes.value);
  return Ref<StorageToken>::make(graph_.add_storage(bytes, on_gpu), log_);
}

Value Tracer::view_of(Ref<StorageToken> storage, DType dtype, Shape sizes, Shape strides) {
  auto v = Value::make();
  v->id = graph_.add_tensor(storage->id(), dtype, sizes, strides);
  v->storage = std::move(storage);
  v->dtype = dtype;
  v->sizes = std::move(sizes);
  v->strides = std::move(strides);
  return v;
}

Value Tracer::constant(DType dtype, const Shape& sizes) {
  Value& known = constants_[{dtype, sizes}];
  if (!known) known = fresh(dtype, sizes);
  return known;
}

Value Tracer::root(Root kind, std::string_view name, DType dtype, const Shape& sizes, Shape strides, bool on_gpu) {
  Value v = fresh(dtype, sizes, std::move(strides), on_gpu);
  graph_.mark_root(v->storage->id(), kind, name);
  return v;
}

void Tracer::make_parameter(const Value& v) {
  Node& node = nodes_.emplace_back();
  node.name = "torch::autograd::AccumulateGrad";
  node.sequence = kAccumulateSequence;
  node.parameter = v;
  v->history = &node;
  v->is_leaf = true;
}

void Tracer::emit(std::string_view name, ValueSpan inputs, ValueSpan outputs, const Attributes& attributes) {
  if (interceptor_ && interceptor_(name, outputs)) return;
  operands_.clear();
  for (const Value& v : inputs) {
    if (v) operands_.push_back(v->id);
  }
  const size_t input_count = operands_.size();
  for (const Value& v : outputs) {
    if (v) operands_.push_back(v->id);
  }
  const std::span<const TensorId> operands = operands_;
  graph_.add_op(
      {.name = name,
       .phase = phase_,
       .module = module_,
       .inputs = operands.first(input_count),
       .outputs = operands.subspan(input_count),
       .attributes = &attributes,
       .sequence = recorded_sequence_.value_or(node_ != nullptr && !gradients_on_ ? node_->sequence : sequence_),
       .autograd_node = node_ != nullptr && !gradients_on_ ? node_->name : std::string_view(),
       .piece = recorded_piece_});
}

Node& Tracer::add_node(std::string_view name, ValueSpan inputs) {
  Node& node = nodes_.emplace_back();
  node.name = name;
  node.sequence = ++sequence_;
  node.next.reserve(inputs.size());
  for (const Value& v : inputs) {
    node.next.push_back(needs_gradient(v) ? Edge{v->history, v->result_index, v->sizes, v->dtype} : Edge{});
  }
  return node;
}

Node* Tracer::record(std::string_view node_name, ValueSpan inputs, ValueSpan results) {
  if (!gradients_on_ || std::none_of(inputs.begin(), inputs.end(), needs_gradient)) return nullptr;
  Node& node = add_node(node_name, inputs);
  node.result_count = results.size();
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i] || !is_floating(results[i]->dtype)) continue;
    results[i]->history = &node;
    results[i]->result_index = i;
    results[i]->is_leaf = false;
  }
  return &node;
}

Node& Tracer::record_stretch(std::string_view node_name, ValueSpan inputs, ValueSpan results) {
  Node& node = add_node(node_name, inputs);
  node.result_count = results.size();
  for (size_t i = 0; i < results.size(); ++i) {
    if (!is_floating(results[i]->dtype)) continue;
    results[i]->history = &node;
    results[i]->result_index = i;
  }
  return node;
}

Node* Tracer::record_in_place(std::string_view node_name, ValueSpan inputs, const Value& self) {
  if (!self->base) return record(node_name, inputs, {self});
  if (!gradients_on_ || std::none_of(inputs.begin(), inputs.end(), needs_gradient)) return nullptr;
  Node& inner = add_node(node_name, inputs);
  // The base's history becomes: copy its gradient, replace the view's part by what the inner step makes of it.
  const Value base = self->base;
  Values outer_inputs = {base};
  outer_inputs.insert(outer_inputs.end(), inputs.begin() + 1, inputs.end());
  Node& outer = add_node("torch::autograd::CopySlices", outer_inputs);
  outer.backward = [this, &inner, &outer, base_sizes = base->sizes, base_strides = base->strides, sizes = self->sizes,
                    strides = self->strides](Values gradients) {
    Value whole = fresh(gradients[0]->dtype, base_sizes, base_strides);
    emit("aten.new_empty_strided.default", {gradients[0]}, {whole}, {{"size", base_sizes}, {"stride", base_strides}});
    emit("aten.copy_.default", {whole, gradients[0]}, {whole});
    Value part = alias(whole, whole->dtype, sizes, strides);
    emit("aten.as_strided.default", {whole}, {part},
         {{"size", sizes}, {"stride", strides}, {"storage_offset", int64_t{0}}});
    Value copy = fresh(part->dtype, sizes);
    emit("aten.clone.default", {part}, {copy});
    Values results = inner.backward({copy});
    if (results[0]) emit("aten.copy_.default", {part, results[0]}, {part});
    results[0] = wanted(outer, 0) ? whole : nullptr;
    return results;
  };
  base->history = &outer;
  base->result_index = 0;
  // The view's own history is made anew from the base's.
  Node& again = add_node("AsStridedBackward0", {base});
  again.backward = [this, base_sizes = base->sizes, base_strides = base->strides, sizes = self->sizes,
                    strides = self->strides](Values gradients) {
    return Values{aten::as_strided_backward(*this, gradients[0], sizes, strides, base_sizes, base_strides)};
  };
  self->history = &again;
  self->result_index = 0;
  return &inner;
}

Value Tracer::save_result(const Value& v) {
  Value saved = alias(v, v->dtype, v->sizes, v->strides);
  emit("aten.detach.default", {v}, {saved});
  return saved;
}

Value Tracer::unpack_result(const Value& saved) {
  emit("aten.detach.default", {saved}, {saved});
  return saved;
}

void Tracer::stand_in(const Op& op, std::string_view module, bool gradients_on) {
  phase_ = op.phase;
  module_ = module;
  recorded_sequence_ = op.sequence;
  recorded_piece_ = op.piece;
  gradients_on_ = gradients_on;
}

std::shared_ptr<Value> Tracer::watch_gradient(const Value& v) {
  auto slot = std::make_shared<Value>();
  Node& node = nodes_.emplace_back();
  node.backward = [slot](Values gradients) {
    *slot = std::move(gradients[0]);
    return Values{};
  };
  v->history = &node;
  v->result_index = 0;
  return slot;
}

void Tracer::count_dependencies(const std::vector<Edge>& results) {
  std::vector<Node*> pending;
  const uint32_t pass = ++passes_;
  const auto reach = [&](Node* node) {
    if (std::exchange(node->counted_in, pass) != pass) pending.push_back(node);
  };
  for (const Edge& edge : results) reach(edge.node);
  while (!pending.empty()) {
    Node* node = pending.back();
    pending.pop_back();
    for (const Edge& edge : node->next) {
      if (edge.node == nullptr) continue;
      ++edge.node->waiting_for;
      reach(edge.node);
    }
  }
}

void Tracer::deliver(const Edge& edge, Value gradient) {
  Node& node = *edge.node;
  node.gradients.resize(std::max(node.gradients.size(), node.result_count));
  if (!gradient) return;
  Value& slot = node.gradients[edge.input];
  slot = slot ? aten::add(*this, slot, gradient) : std::move(gradient);
}

Value Tracer::conform(const Edge& edge, Value gradient) {
  if (gradient->sizes != edge.sizes) gradient = aten::sum_to(*this, gradient, edge.sizes);
  if (gradient->dtype != edge.dtype) gradient = aten::to_copy(*this, gradient, edge.dtype);
  return gradient;
}

// A parameter's gradient: taken over as it is where its layout is the parameter's and nobody else holds it, else copied; added to
// the one that is there.
void Tracer::accumulate(Node& node, Value gradient) {  // NOLINT(performance-unnecessary-value-param): counted
  const Value& parameter = node.parameter;
  if (const Value there = gradient_of(parameter)) {
    emit("aten.add_.Tensor", {there, gradient}, {there});
    return;
  }
  const bool dense = is_dense(*parameter);
  bool layout_fits = dense || is_contiguous(*gradient);
  for (size_t i = 0; dense && i < gradient->sizes.size(); ++i) {
    if (gradient->sizes[i] != 1 && gradient->strides[i] != parameter->strides[i]) layout_fits = false;
  }
  Value kept;
  if (layout_fits && gradient.use_count() == 1) {
    kept = alias(gradient, gradient->dtype, gradient->sizes, gradient->strides);
    emit("aten.detach.default", {gradient}, {kept});
  } else if (dense) {
    kept = fresh(gradient->dtype, gradient->sizes, parameter->strides);
    emit("aten.new_empty_strided.default", {gradient}, {kept}, {{"size", kept->sizes}, {"stride", kept->strides}});
    emit("aten.copy_.default", {kept, gradient}, {kept});
  } else {
    kept = fresh(gradient->dtype, gradient->sizes);
    emit("aten.clone.default", {gradient}, {kept});
  }
  gradients_[parameter.get()] = kept;
}

void Tracer::backward(const Value& loss, Value seed) {
  if (!needs_gradient(loss)) return;
  Values seeds;
  seeds.push_back(std::move(seed));
  backward({edge_to(loss)}, std::move(seeds));
}

void Tracer::backward(const std::vector<Edge>& results, Values seeds) {
  const Node* const around = node_;  // where a step of another pass runs this one
  const auto later_first = [](const Node* a, const Node* b) { return a->sequence < b->sequence; };
  std::priority_queue<Node*, std::vector<Node*>, decltype(later_first)> ready(later_first);
  count_dependencies(results);
  for (size_t i = 0; i < results.size(); ++i) {
    Node* node = results[i].node;
    const bool queued = !node->gradients.empty();
    deliver(results[i], std::move(seeds[i]));
    if (node->waiting_for == 0 && !queued) ready.push(node);
  }
  while (!ready.empty()) {
    Node* node = ready.top();
    ready.pop();
    node_ = node;
    step(*node);
    for (const Edge& edge : node->next) {
      if (edge.node != nullptr && --edge.node->waiting_for == 0) ready.push(edge.node);
    }
  }
  node_ = around;
}

// Runs a node and hands its gradients on.
void Tracer::step(Node& node) {
  Values incoming = std::move(node.gradients);
  node.gradients.clear();
  if (node.parameter) {
    if (incoming.empty() || !incoming[0]) return;
    Value gradient = std::move(incoming[0]);
    incoming.clear();
    accumulate(node, std::move(gradient));
    return;
  }
  const bool any = std::any_of(incoming.begin(), incoming.end(), [](const Value& v) { return v != nullptr; });
  Values outgoing = any && node.backward ? node.backward(std::move(incoming)) : Values(node.next.size());
  node.backward = nullptr;
  CHECK(outgoing.size() == node.next.size(), std::string(node.name) + " returned a wrong number of gradients");
  for (size_t i = 0; i < outgoing.size(); ++i) {
    if (node.next[i].node != nullptr && outgoing[i]) outgoing[i] = conform(node.next[i], std::move(outgoing[i]));
  }
  for (size_t i = 0; i < outgoing.size(); ++i) {
    if (node.next[i].node != nullptr) deliver(node.next[i], std::move(outgoing[i]));
  }
}

Value Tracer::gradient_of(const Value& parameter) const {
  const auto found = gradients_.find(parameter.get());
  return found == gradients_.end() ? nullptr : found->second;
}

Graph Tracer::finish() {
  log_->freed = nullptr;
  return graph_.finish();
}

}  // namespace forerun::derive
