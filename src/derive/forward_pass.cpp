#include "derive/forward_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "derive/lowering.h"
#include "derive/op_class.h"

namespace forerun::derive {

// What a block needs to run a second time.
struct ForwardPass::Rerun {
  Stretch stretch;
  std::vector<std::pair<TensorId, Value>> given;  // what it reads from before it
  std::vector<TensorId> wanting;  // of those, what wants a gradient back, in the order of the step's inputs
  std::vector<TensorId> made;     // its results, in the order of the step's results
  KeptResults kept;               // by selective checkpointing; null where all is made anew
};

ForwardPass::ForwardPass(const Graph& forward, Tracer& tracer, Autocast& autocast, const DispatchTarget& target,
                         const TrainingSetup& setup)
    : forward_(forward),
      t_(tracer),
      autocast_(autocast),
      target_(target),
      setup_(setup),
      values_(forward.tensors().size()) {
  find_last_uses();
  wants_.assign(values_.size(), false);
}

void ForwardPass::find_last_uses() {
  last_use_.assign(values_.size(), 0);
  for (size_t i = 0; i < forward_.op_count(); ++i) {
    const Op& op = forward_.ops()[i];
    for (const TensorId id : forward_.inputs(op)) last_use_[id.value] = i;
    for (const TensorId id : forward_.outputs(op)) last_use_[id.value] = i;
  }
  for (const TensorId id : forward_.results()) last_use_[id.value] = forward_.op_count();
}

// A forward value is dropped after its last use, as a Python local would be.
void ForwardPass::drop_finished(size_t index, Values& values) {
  const auto drop = [&](TensorId id) {
    if (last_use_[id.value] == index && forward_.storage(forward_.tensor(id).storage).root == Root::none) {
      values[id.value] = nullptr;
    }
  };
  const Op& op = forward_.ops()[index];
  for (const TensorId id : forward_.inputs(op)) drop(id);
  for (const TensorId id : forward_.outputs(op)) drop(id);
}

Status ForwardPass::run() {
  if (setup_.checkpointing != Checkpointing::none && stretches_.empty()) {
    stretches_ =
        checkpoint_stretches(forward_, [&](size_t op) { return quantized_.contains(op) && !adapters_.contains(op); });
    for (Stretch& stretch : stretches_) stretch.last_runs = stretch.last_runs || fp8_.contains(stretch.last);
  }
  held_earlier_ = std::move(held_);
  held_.clear();
  size_t next = 0;
  for (const Stretch& stretch : stretches_) {
    if (Status status = run_ops(next, stretch.begin, values_, autocast_); !status.ok()) return status;
    if (Status status = run_stretch(stretch); !status.ok()) return status;
    next = stretch.end;
  }
  if (Status status = run_ops(next, forward_.op_count(), values_, autocast_); !status.ok()) return status;
  t_.set_module("");
  return {};
}

Status ForwardPass::run_ops(size_t begin, size_t end, Values& values, Autocast& autocast) {
  for (size_t i = begin; i < end; ++i) {
    if (Status status = run_op(i, values, autocast); !status.ok()) return status;
  }
  return {};
}

Status ForwardPass::run_op(size_t index, Values& values, Autocast& autocast) {
  const Op& op = forward_.ops()[index];
  t_.set_module(forward_.module(op));
  Values inputs;
  inputs.reserve(op.input_count);
  for (const TensorId id : forward_.inputs(op)) {
    if (!values[id.value]) {
      return Error{fmt::format("op {} ({}) reads a tensor that nothing made", index, forward_.name(op)), "", ""};
    }
    inputs.push_back(values[id.value]);
  }
  OpCall call{t_, autocast, target_, forward_.name(op), inputs, forward_.attributes(op), {}};
  const auto outputs = forward_.outputs(op);
  // What the source makes of no stated type has that of the weights.
  const bool states_type = forward_.name(op) == "aten.to.dtype";
  for (const TensorId id : outputs) {
    const auto shape = forward_.shape(id);
    const DType stated = forward_.tensor(id).dtype;
    call.results.emplace_back(Shape(shape.begin(), shape.end()),
                              stated == DType::float32 && !states_type ? weight_type(setup_.precision) : stated);
  }
  last_product_ = false;
  const auto wants = [&](TensorId id) { return wants_[id.value] || needs_gradient(values[id.value]); };
  const auto read = forward_.inputs(op);
  const bool wanting = std::any_of(read.begin(), read.end(), wants);
  const auto few_bits = quantized_.find(index);
  if (few_bits != quantized_.end() && few_bits->second.weight.format == WeightFormat::int8 && !running_again_ &&
      wants(read[few_bits->second.operand])) {
    held_.push_back(inputs[few_bits->second.operand]);
  }
  const auto in_fp8 = fp8_.find(index);
  Values results = few_bits != quantized_.end() ? Values{quantized(few_bits->second, inputs)}
                   : in_fp8 != fp8_.end()       ? Values{multiplied_in_fp8(in_fp8->second, inputs)}
                                                : lower(call);
  CHECK(results.size() == outputs.size(), "lowering of " + forward_.name(op) + " gave a wrong number of results");
  if (const auto found = adapters_.find(index); found != adapters_.end()) {
    results[0] = adapted(found->second, inputs, results[0], autocast);
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    wants_[outputs[k].value] = wanting || adapters_.contains(index);
    CHECK(results[k]->sizes == call.results[k].first, "lowering of " + forward_.name(op) + " gave another shape");
    values[outputs[k].value] = std::move(results[k]);
  }
  inputs.clear();
  drop_finished(index, values);
  return {};
}

Value ForwardPass::quantized(const QuantizedLayer& layer, const Values& inputs) {
  in_custom_op_ = true;
  const Value bias = layer.bias ? inputs[*layer.bias] : nullptr;
  const auto run = layer.weight.format == WeightFormat::int8 ? linear_8bit : linear_4bit;
  Value y = run(t_, inputs[layer.operand], layer.weight, bias);
  in_custom_op_ = false;
  return y;
}

Value ForwardPass::multiplied_in_fp8(const Fp8Layer& layer, const Values& inputs) {
  in_custom_op_ = true;
  const Value bias = layer.bias ? inputs[*layer.bias] : nullptr;
  Value y = linear_fp8(t_, inputs[layer.operand], inputs[layer.operand + 1], bias, layer.turned);
  in_custom_op_ = false;
  return y;
}

Value ForwardPass::adapted(const Adapter& adapter, const Values& inputs, const Value& result, Autocast& autocast) {
  const auto narrow = [&](const Value& v) { return autocast.lower(v); };
  // Beside weights of 4 bits peft copies the result first; beside any quantized ones it leaves types to autocast.
  const bool few_bits = setup_.quantize.any() && quantized_.contains(adapter.op);
  const bool leaves_types = few_bits && autocast.on();
  const Value base =
      few_bits && setup_.quantize.format != WeightFormat::int8 ? aten::clone_contiguous(t_, result) : result;
  Value x = inputs[adapter.layer.operand];
  if (x->dtype != adapter.down->dtype && !leaves_types) x = aten::to_copy(t_, x, adapter.down->dtype);
  if (setup_.lora.dropout > 0) x = aten::dropout(t_, x, setup_.lora.dropout);
  const Value down = narrow(adapter.down);
  x = aten::linear(t_, narrow(x), down, nullptr);
  const Value up = narrow(adapter.up);
  x = narrow(x);
  last_product_ = true;
  x = aten::linear(t_, x, up, nullptr);
  x = aten::unary(t_, "aten.mul.Tensor", x, {{"other", 2.0}});
  if (few_bits && !leaves_types && x->dtype != base->dtype) x = aten::to_copy(t_, x, base->dtype);
  x = aten::add(t_, base, x);
  return x->dtype == result->dtype ? x : aten::to_copy(t_, x, result->dtype);
}

std::vector<TensorId> ForwardPass::read_from_before(const Stretch& stretch) const {
  std::set<uint32_t> made;
  std::set<uint32_t> seen;
  std::vector<TensorId> read;
  for (size_t i = stretch.begin; i < stretch.end; ++i) {
    const Op& op = forward_.ops()[i];
    for (const TensorId id : forward_.inputs(op)) {
      if (!made.contains(id.value) && seen.insert(id.value).second) read.push_back(id);
    }
    for (const TensorId id : forward_.outputs(op)) made.insert(id.value);
  }
  return read;
}

std::vector<TensorId> ForwardPass::used_later(const Stretch& stretch) const {
  std::set<uint32_t> seen;
  std::vector<TensorId> used;
  for (size_t i = stretch.begin; i < stretch.end; ++i) {
    for (const TensorId id : forward_.outputs(forward_.ops()[i])) {
      if (last_use_[id.value] >= stretch.end && seen.insert(id.value).second) used.push_back(id);
    }
  }
  return used;
}

Status ForwardPass::run_stretch(const Stretch& stretch) {
  auto rerun = std::make_shared<Rerun>();
  rerun->stretch = stretch;
  bool trains = false;
  Values wanting;
  for (const TensorId id : read_from_before(stretch)) {
    const Value& v = value(id);
    if (!v) continue;  // run_op says which
    rerun->given.emplace_back(id, v);
    trains = trains || needs_gradient(v);
    if (!needs_gradient(v) || v->is_leaf) continue;
    rerun->wanting.push_back(id);
    wanting.push_back(v);
  }
  const auto within = [&](const auto& entry) { return entry.first >= stretch.begin && entry.first < stretch.end; };
  trains = trains || std::any_of(adapters_.begin(), adapters_.end(), within);
  if (setup_.checkpointing == Checkpointing::selective) {
    rerun->kept = std::make_shared<std::vector<Values>>();
    t_.intercept([this, kept = rerun->kept](std::string_view name, ValueSpan outputs) {
      if (!in_custom_op_ && is_kept_by_selective(name)) kept->emplace_back(outputs.begin(), outputs.end());
      return false;
    });
  }
  const bool recording = t_.set_gradients(false);
  Status status = run_ops(stretch.begin, stretch.end, values_, autocast_);
  t_.set_gradients(recording);
  t_.intercept(nullptr);
  if (!status.ok() || !trains || !recording) return status;

  rerun->made = used_later(stretch);
  Values made;
  for (const TensorId id : rerun->made) made.push_back(value(id));
  Node& node = t_.record_stretch("CheckpointBackward", wanting, made);
  node.backward = [this, rerun](Values gradients) { return run_again(*rerun, std::move(gradients)); };
  return {};
}

// Whether an op of the second run is not dispatched: its results were kept, or nobody needs them any more.
bool ForwardPass::passes_over(const Rerun& rerun, size_t op, size_t& kept, bool& stopped, std::string_view name,
                              ValueSpan outputs) const {
  if (op > rerun.stretch.last || stopped) return true;
  const bool keeps_operands =
      !adapters_.contains(op) || last_product_;  // an adapter's second product keeps the first's result
  if (op == rerun.stretch.last && !rerun.stretch.last_runs && keeps_operands) {
    stopped = name != "aten._to_copy.default" && op_class(name) != OpClass::view;
    return stopped;
  }
  if (rerun.kept == nullptr || in_custom_op_ || !is_kept_by_selective(name)) return false;
  const Values& results = (*rerun.kept)[kept++];
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i]) continue;
    outputs[i]->storage = results[i]->storage;
    outputs[i]->id = results[i]->id;
  }
  return true;
}

Values ForwardPass::run_again(const Rerun& rerun, Values gradients) {
  const Stretch& stretch = rerun.stretch;
  std::vector<std::shared_ptr<Value>> wanted;
  std::vector<Edge> results;
  {
    Values values(values_.size());
    for (const auto& [id, given] : rerun.given) {
      if (!needs_gradient(given) || given->is_leaf) {
        values[id.value] = given;
        continue;
      }
      values[id.value] = t_.view_of(given->storage, given->dtype, given->sizes, given->strides);
      wanted.push_back(t_.watch_gradient(values[id.value]));
    }
    Autocast autocast(t_, autocast_.on() ? std::optional(autocast_.type()) : std::nullopt);
    const bool recording = t_.set_gradients(true);
    running_again_ = true;
    size_t kept = 0;
    bool stopped = false;
    for (size_t i = stretch.begin; i < stretch.end; ++i) {
      t_.intercept([&, i](std::string_view name, ValueSpan outputs) {
        return passes_over(rerun, i, kept, stopped, name, outputs);
      });
      const Status status = run_op(i, values, autocast);
      CHECK(status.ok(), "a block that ran once does not run again");
    }
    running_again_ = false;
    t_.intercept(nullptr);
    t_.set_gradients(recording);
    t_.set_module("");
    for (const TensorId id : rerun.made) results.push_back(Tracer::edge_to(values[id.value]));
  }
  Values seeds;
  std::vector<Edge> reached;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].node == nullptr || !gradients[i]) continue;
    reached.push_back(results[i]);
    seeds.push_back(std::move(gradients[i]));
  }
  t_.backward(reached, std::move(seeds));
  Values back;
  for (const std::shared_ptr<Value>& slot : wanted) back.push_back(*slot);
  return back;
}

}  // namespace forerun::derive
