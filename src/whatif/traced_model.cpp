#include "whatif/traced_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "timeline/iterations.h"
#include "timeline/layers.h"
#include "whatif/traced_call.h"

namespace forerun::whatif {
namespace {

bool is_loss(const std::string& name) {
  return name.find("loss") != std::string::npos || name.find("cross_entropy") != std::string::npos;
}

// A tensor of the forward pass while it is rebuilt, as traced and for the batch that is asked for.
struct TracedSlot {
  TensorId traced, asked;
  Shape shape;  // as traced
  bool floating = true;
  bool branches = false;  // made by an op whose result networks read more than once
  bool parameter = false;
  int uses = 0;
  size_t made = 0;        // number of the call
  bool weight = false;    // a parameter, or a view of one
  bool constant = false;  // depends on no parameter and no input
};

// Where results are read twice: residual sums, norms, activations behind them, concatenations.
bool makes_branch(const std::string& name) {
  for (const char* part : {"add", "norm", "relu", "cat", "pool", "embedding", "mul", "swish", "silu"}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

bool is_recurrent_call(const std::string& name) {
  return name == "aten::lstm" || name == "aten::gru" || name == "aten::rnn_tanh" || name == "aten::rnn_relu";
}

class ForwardRebuilder {
 public:
  ForwardRebuilder(int64_t batch, double factor, std::multiset<Shape> parameters)
      : batch_(batch), factor_(factor), parameters_left_(std::move(parameters)), known_(!parameters_left_.empty()) {}

  // The calls behind `at` tell the shapes of results that the vocabulary does not know.
  void add(const std::vector<TracedOp>& calls, size_t at) {
    const TracedOp& op = calls[at];
    const std::string module = std::to_string(calls_);
    const ForwardBuilder::Scope traced_scope(traced_, module), asked_scope(asked_, module);
    TracedCall traced{op, {}, batch_, 1, std::nullopt}, asked{op, {}, batch_, factor_, std::nullopt};
    std::vector<size_t> read;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      traced.tensors.emplace_back();
      asked.tensors.emplace_back();
      for (const size_t slot : slots_of(op, i, read)) {
        read.push_back(slot);
        traced.tensors.back().push_back(slots_[slot].traced);
        asked.tensors.back().push_back(slots_[slot].asked);
      }
    }
    for (const size_t slot : read) ++slots_[slot].uses;
    if (result_unknown(op.name)) traced.told = asked.told = told_by(calls, at + 1);
    const std::vector<TensorId> results = emit_call(traced_, traced), grown = emit_call(asked_, asked);
    TracedSlot made = result_like(op, read);
    if (in_place(op.name) && !read.empty()) {
      made.traced = slots_[read.front()].traced;
      made.asked = slots_[read.front()].asked;
      made.shape = slots_[read.front()].shape;
      made.floating = slots_[read.front()].floating;
      slots_.push_back(made);
    } else {
      for (size_t k = 0; k < std::min(results.size(), grown.size()); ++k) {
        made.traced = results[k];
        made.asked = grown[k];
        made.shape = traced_.shape(results[k]);
        made.floating = is_floating(traced_.dtype(results[k]));
        slots_.push_back(made);
      }
    }
    ++calls_;
  }

  Result<Graph> finish(const TracedOp* loss) {
    size_t result = slots_.size();
    if (loss != nullptr && !loss->inputs.empty()) result = matching(loss->inputs.front().shape, true, {});
    for (size_t i = slots_.size(); result == slots_.size() && i-- > 0;) {
      if (slots_[i].floating && !slots_[i].parameter && !slots_[i].shape.empty()) result = i;
    }
    if (result < slots_.size()) asked_.result(slots_[result].asked);
    if (traced_.failed()) return traced_.finish();
    return asked_.finish();
  }

 private:
  // What a result of the call is, by what it read.
  [[nodiscard]] TracedSlot result_like(const TracedOp& op, const std::vector<size_t>& read) const {
    TracedSlot made{{}, {}, {}, true, makes_branch(op.name), false, 0, calls_};
    made.constant = made.weight = true;
    for (const size_t slot : read) {
      made.constant = made.constant && (slots_[slot].constant || (!slots_[slot].floating && !slots_[slot].weight));
      made.weight = made.weight && slots_[slot].weight;
    }
    made.constant = made.constant || makes_constant(op.name);
    made.weight = made.weight && !read.empty();
    return made;
  }

  // The first shape that a call soon after reads and nothing has; of the very next call also one that all have read.
  [[nodiscard]] std::optional<Shape> told_by(const std::vector<TracedOp>& calls, size_t from) const {
    constexpr size_t kSoon = 6;
    for (size_t i = from; i < std::min(calls.size(), from + kSoon); ++i) {
      for (size_t k = 0; k < calls[i].inputs.size(); ++k) {
        const TracedTensor& input = calls[i].inputs[k];
        const auto dtype = dtype_traced(input.type);
        if (!dtype || !is_floating(*dtype) || input.shape.empty()) continue;
        if (role_of(calls[i].name, k) != ArgumentRole::value || parameters_left_.contains(input.shape)) continue;
        const size_t found = matching(input.shape, true, {});
        if (found == slots_.size() || (i == from && k == 0 && slots_[found].uses > 0)) return input.shape;
      }
      if (!result_unknown(calls[i].name)) break;  // its result would be new too
    }
    return std::nullopt;
  }

  // The tensors of an argument; none where it is no tensor.
  std::vector<size_t> slots_of(const TracedOp& op, size_t argument, const std::vector<size_t>& read) {
    const TracedTensor& input = op.inputs[argument];
    std::vector<size_t> found;
    if (argument > 0 && is_recurrent_call(op.name)) return found;  // state and weights follow from the shapes
    if (input.type == "TensorList") {
      const bool indices = op.name == "aten::index";
      std::vector<size_t> taken = read;
      for (const auto& shape : input.list) {
        found.push_back(slot(op, argument, shape, indices ? DType::int64 : DType::float32, taken));
        taken.push_back(found.back());
      }
    } else if (const auto dtype = dtype_traced(input.type)) {
      found.push_back(slot(op, argument, input.shape, *dtype, read));
    }
    return found;
  }

  size_t slot(const TracedOp& op, size_t argument, const Shape& shape, DType dtype, const std::vector<size_t>& read) {
    const ArgumentRole role = role_of(op.name, argument);
    if (role == ArgumentRole::value && !shape.empty()) {
      const size_t found = matching(shape, is_floating(dtype), read);
      if (found < slots_.size()) return found;
    }
    if (role == ArgumentRole::parameter) {  // a part of one that was split before
      for (size_t i = 0; i < slots_.size(); ++i) {
        const TracedSlot& s = slots_[i];
        if (s.weight && !s.parameter && s.uses == 0 && s.shape == shape) return i;
      }
    }
    return root(role, shape, dtype, op.name, argument);
  }

  [[nodiscard]] size_t matching(const Shape& shape, bool floating, const std::vector<size_t>& read) const {
    constexpr size_t kRecent = 64;  // calls; what nobody has read for longer, nobody will
    const size_t none = slots_.size();
    size_t unread = none, branch = none, latest = none, constant = none;
    for (size_t i = slots_.size(); i-- > 0;) {
      const TracedSlot& s = slots_[i];
      if (s.floating != floating || s.shape != shape || s.parameter) continue;
      if (std::find(read.begin(), read.end(), i) != read.end()) continue;
      if (s.constant && constant == none) constant = i;
      if (s.constant) continue;
      if (s.uses == 0 && s.made + kRecent > calls_) unread = i;
      if (branch == none && s.branches) branch = i;
      if (latest == none) latest = i;
    }
    if (unread < none) return unread;
    if (branch < none) return branch;
    return latest < none ? latest : constant;
  }

  size_t root(ArgumentRole role, const Shape& shape, DType dtype, const std::string& op, size_t argument) {
    const std::string name = "argument" + std::to_string(argument);
    const bool floating = is_floating(dtype);
    const bool wide = shape.size() > 1 || (!floating && shape.size() == 1);  // a vector of numbers is a parameter
    const bool batched = wide && shape[0] == batch_ && role == ArgumentRole::value;
    bool trained = floating && !shape.empty() &&
                   (role == ArgumentRole::parameter || (role == ArgumentRole::value && !(batched && argument == 0)));
    if (trained && known_) {
      const auto left = parameters_left_.find(shape);
      if (left != parameters_left_.end()) {
        parameters_left_.erase(left);
      } else if (const size_t tied = parameter_like(shape); tied < slots_.size()) {
        return tied;
      } else {
        trained = false;  // no update: a buffer
      }
    }
    Shape asked = shape;
    if (batched) asked[0] = std::max<int64_t>(1, std::llround(static_cast<double>(asked[0]) * factor_));
    TracedSlot made{{}, {}, shape, floating, makes_branch(op), trained, 0, calls_};
    made.weight = trained;
    made.constant = !trained && !batched;
    const DType stored = floating ? DType::float32 : dtype;
    if (trained) {
      made.traced = traced_.parameter(name, shape, stored);
      made.asked = asked_.parameter(name, asked, stored);
    } else if (batched) {
      made.traced = traced_.input(name, shape, stored);
      made.asked = asked_.input(name, asked, stored);
    } else {
      made.traced = traced_.buffer(name, shape, stored);
      made.asked = asked_.buffer(name, asked, stored);
    }
    slots_.push_back(made);
    return slots_.size() - 1;
  }

  // A parameter used twice: the optimizer updates fewer of this shape than calls name.
  [[nodiscard]] size_t parameter_like(const Shape& shape) const {
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].parameter && slots_[i].shape == shape) return i;
    }
    return slots_.size();
  }

  const int64_t batch_;
  const double factor_;
  std::multiset<Shape> parameters_left_;
  const bool known_;
  ForwardBuilder traced_, asked_;
  std::vector<TracedSlot> slots_;
  size_t calls_ = 0;
};

// What of the trace is one iteration.
struct TracedIteration {
  std::vector<EventIndex> forward;  // outermost ops of the forward pass on the driving thread
  std::vector<EventIndex> others;   // outermost ops elsewhere: backward
  std::multiset<Shape> parameters;  // that the update reads, where it goes through them one by one
};

std::vector<TracedIteration> iterations_in(const Trace& trace, const Iterations& found, const EventLayers& layers) {
  std::vector<TracedIteration> all(std::max<size_t>(found.count(), 1));
  for (EventIndex i = 0; i < trace.size(); ++i) {
    if (trace.events.kind[i] != EventKind::op) continue;
    const auto next = std::upper_bound(found.boundaries.begin(), found.boundaries.end(), trace.events.start[i]);
    const auto index = static_cast<size_t>(next - found.boundaries.begin());
    if (!found.boundaries.empty() && (index == 0 || index > all.size())) continue;
    TracedIteration& one = all[found.boundaries.empty() ? 0 : index - 1];
    const bool outermost = layers.outer_op[i] == i;
    if (layers.phase[i] == StepPhase::forward && outermost && trace.events.lane[i] == found.lane) {
      one.forward.push_back(i);
    }
    if (layers.phase[i] == StepPhase::backward && outermost) one.others.push_back(i);
    if (layers.phase[i] == StepPhase::update && trace.name(i) == "aten::addcdiv_") {
      if (const auto op = traced_op(trace, i); op && !op->inputs.empty()) one.parameters.insert(op->inputs[0].shape);
    }
  }
  return all;
}

// The leading extent of what the first layers are given.
int64_t batch_of(const std::vector<TracedOp>& calls) {
  int64_t batch = 0;
  for (const TracedOp& op : calls) {
    const bool looks_up = op.name == "aten::embedding";
    const bool layer = op.name.find("conv") != std::string::npos || op.name == "aten::linear";
    const size_t argument = looks_up ? 1 : 0;
    if ((!looks_up && !layer) || argument >= op.inputs.size() || op.inputs[argument].shape.empty()) continue;
    if (layer && batch > 0) return batch;
    batch = std::max(batch, op.inputs[argument].shape[0]);
    if (layer) return batch;
  }
  return batch;
}

TrainingSetup setup_of(const Trace& trace, const EventLayers& layers) {
  TrainingSetup setup;
  setup.optimizer.impl = OptimizerImpl::forloop;
  setup.optimizer.kind = OptimizerKind::other;
  for (EventIndex i = 0; i < trace.size(); ++i) {
    const std::string& name = trace.name(i);
    if (name.starts_with("Optimizer.step#")) {
      const std::string rest = name.substr(15);
      if (const auto kind = optimizer_named(rest.substr(0, rest.find('.')))) setup.optimizer.kind = *kind;
    }
    if (layers.phase[i] == StepPhase::update && trace.events.kind[i] == EventKind::op) {
      if (name.starts_with("aten::_foreach_")) setup.optimizer.impl = OptimizerImpl::foreach;
      if (name.starts_with("aten::_fused_")) setup.optimizer.impl = OptimizerImpl::fused;
    }
  }
  setup.precision = traced_precision(trace);
  return setup;
}

// Forward ops by their place among the calls, which begin again where gradients are accumulated over several passes;
// backward ops by the sequence number of the forward op. What is neither counts with the loss.
void map_calls(const Trace& trace, const TracedIteration& iteration, const std::vector<std::string>& names,
               TracedModel& model) {
  std::map<int64_t, uint32_t> by_sequence;  // the first sequence number of a call -> call; the last of equals
  size_t next = 0;
  for (const EventIndex event : iteration.forward) {
    const std::string& name = trace.name(event);
    if (next >= names.size() && name == names.front()) next = 0;
    const bool expected = next < names.size() && name == names[next];
    const uint32_t call = expected ? static_cast<uint32_t>(next++) : model.calls;
    model.call_of[event] = call;
    if (trace.events.sequence[event] >= 0) by_sequence[trace.events.sequence[event]] = call;
  }
  for (const EventIndex event : iteration.others) {
    const int64_t sequence = trace.events.sequence[event];
    const auto behind = sequence < 0 ? by_sequence.begin() : by_sequence.upper_bound(sequence);
    if (behind != by_sequence.begin()) model.call_of[event] = std::prev(behind)->second;
  }
}

}  // namespace

Precision traced_precision(const Trace& trace) {
  for (EventIndex i = 0; i < trace.size(); ++i) {
    const std::string& name = trace.name(i);
    if (trace.events.kind[i] != EventKind::op) continue;
    if (name != "aten::mm" && name != "aten::addmm" && name != "aten::cudnn_convolution") continue;
    const auto op = traced_op(trace, i);
    if (op && in_half(*op)) return Precision::amp_bf16;
  }
  return Precision::fp32;
}

Result<TracedModel> traced_model(const Trace& trace, const TraceLinks& links) {
  const Iterations found = find_iterations(trace, links);
  const EventLayers layers = map_layers(trace, links, found);
  const std::vector<TracedIteration> iterations = iterations_in(trace, found, layers);
  const Error no_shapes{"no forward pass with recorded shapes", trace.file, "profile with record_shapes=True"};
  const auto longest = std::max_element(
      iterations.begin(), iterations.end(),
      [](const TracedIteration& a, const TracedIteration& b) { return a.forward.size() < b.forward.size(); });
  if (longest == iterations.end() || longest->forward.empty()) return no_shapes;
  auto calls = std::make_shared<std::vector<TracedOp>>();
  std::optional<TracedOp> loss;
  std::vector<std::string> names;
  bool scalars = false;
  for (const EventIndex event : longest->forward) {
    auto op = traced_op(trace, event);
    if (!op) return no_shapes;
    if (is_loss(op->name)) {
      loss = std::move(op);
      break;
    }
    scalars = scalars || !op->values.empty();
    names.push_back(op->name);
    calls->push_back(std::move(*op));
  }
  if (calls->empty() || !scalars) return no_shapes;
  TracedModel model;
  model.name = trace.file;
  model.calls = static_cast<uint32_t>(calls->size());
  model.input.batch = batch_of(*calls);
  model.setup = setup_of(trace, layers);
  for (const TracedIteration& iteration : iterations) map_calls(trace, iteration, names, model);
  model.forward = [calls, loss, batch = model.input.batch, parameters = longest->parameters](double factor) {
    ForwardRebuilder rebuilder(batch, factor, parameters);
    for (size_t i = 0; i < calls->size(); ++i) rebuilder.add(*calls, i);
    return rebuilder.finish(loss ? &*loss : nullptr);
  };
  const auto once = model.forward(1);
  if (!once) return once.error().within(trace.file);
  return model;
}

}  // namespace forerun::whatif
