#include "derive/iteration.h"

#include <fmt/format.h>

#include <algorithm>

#include "derive/lowering.h"
#include "derive/optimizer.h"

namespace forerun::derive {
namespace {

// Sums of sizes and times stay far from overflow below this.
constexpr double kPebi = 1024.0 * 1024.0 * 1024.0 * 1024.0 * 1024.0;
constexpr double kMostBytes = 16 * kPebi;

bool is_recurrent(const std::string& name) {
  return name == "aten.lstm.input" || name == "aten.gru.input" || name == "aten.rnn_tanh.input" ||
         name == "aten.rnn_relu.input";
}

class IterationBuilder {
 public:
  IterationBuilder(const Graph& forward, const InputSpec& input, const TrainingSetup& setup,
                   const DispatchTarget& target)
      : forward_(forward),
        input_(input),
        setup_(setup),
        target_(target),
        autocast_(tracer_, setup.precision == Precision::amp_bf16),
        values_(forward.tensors().size()) {}

  Result<Graph> run() {
    if (setup_.optimizer.kind == OptimizerKind::other) {
      return Error{"the optimizer is not one that can be derived", "", "use SGD, Adam, AdamW, RMSprop or Adagrad"};
    }
    make_flat_weights();
    make_roots();
    const std::vector<ParameterSlot> slots = make_optimizer_state(tracer_, parameters_, setup_.optimizer);
    find_last_uses();
    if (Status status = run_forward(); !status.ok()) return status.error();
    if (Status status = run_loss_and_backward(); !status.ok()) return status.error();
    tracer_.begin_update();
    update(tracer_, slots, setup_.optimizer);
    if (tracer_.made_bytes() > kMostBytes) {
      return Error{
          fmt::format("an iteration would make tensors of {:.3g} PiB in all", tracer_.made_bytes() / kPebi), "",
          fmt::format("choose a smaller batch, image or length: at most {:.0f} PiB are simulated", kMostBytes / kPebi)};
    }
    tracer_.graph().set_parameter_count(forward_.parameter_count());
    return tracer_.finish();
  }

 private:
  Value& value(TensorId id) { return values_[id.value]; }

  // cuDNN wants all weights of a recurrent layer in one buffer; nn.LSTM and its kin flatten them at construction.
  void make_flat_weights() {
    for (const Op& op : forward_.ops()) {
      if (!is_recurrent(forward_.name(op))) continue;
      const auto weights = forward_.inputs(op).subspan(1);
      int64_t count = 0;
      for (const TensorId id : weights) count += forward_.element_count(id);
      const Storage& last = forward_.storage(forward_.tensor(weights.back()).storage);
      const Value flat = tracer_.root(Root::parameter, forward_.names()[last.root_name],
                                      forward_.tensor(weights.front()).dtype, {count}, {1});
      for (const TensorId id : weights) {
        const Shape sizes(forward_.shape(id).begin(), forward_.shape(id).end());
        Value weight = tracer_.alias(flat, flat->dtype, sizes, contiguous_strides(sizes));
        weight->base = nullptr;
        value(id) = weight;
      }
    }
  }

  Shape root_strides(Root kind, const Shape& sizes) const {
    const bool image_like = sizes.size() == 4 && (kind == Root::parameter || kind == Root::input);
    return setup_.channels_last && image_like ? channels_last_strides(sizes) : contiguous_strides(sizes);
  }

  void make_roots() {
    for (size_t i = 0; i < forward_.tensors().size(); ++i) {
      const Tensor& tensor = forward_.tensors()[i];
      const Storage& storage = forward_.storage(tensor.storage);
      if (storage.root == Root::none || values_[i]) continue;
      const auto shape = forward_.shape(TensorId(i));
      const Shape sizes(shape.begin(), shape.end());
      values_[i] = tracer_.root(storage.root, forward_.names()[storage.root_name], tensor.dtype, sizes,
                                root_strides(storage.root, sizes));
    }
    for (const TensorId id : forward_.parameters()) {
      tracer_.make_parameter(value(id));
      tracer_.graph().add_parameter(value(id)->id);
      parameters_.push_back(value(id));
    }
  }

  // A forward value is dropped after its last use, as a Python local would be.
  void find_last_uses() {
    last_use_.assign(values_.size(), 0);
    for (size_t i = 0; i < forward_.op_count(); ++i) {
      const Op& op = forward_.ops()[i];
      for (const TensorId id : forward_.inputs(op)) last_use_[id.value] = i;
      for (const TensorId id : forward_.outputs(op)) last_use_[id.value] = i;
    }
    for (const TensorId id : forward_.results()) last_use_[id.value] = forward_.op_count();
  }

  void drop_finished(const Op& op, size_t index) {
    const auto drop = [&](TensorId id) {
      if (last_use_[id.value] == index && forward_.storage(forward_.tensor(id).storage).root == Root::none) {
        value(id) = nullptr;
      }
    };
    for (const TensorId id : forward_.inputs(op)) drop(id);
    for (const TensorId id : forward_.outputs(op)) drop(id);
  }

  Status run_forward() {
    for (size_t i = 0; i < forward_.op_count(); ++i) {
      const Op& op = forward_.ops()[i];
      tracer_.set_module(forward_.module(op));
      Values inputs;
      for (const TensorId id : forward_.inputs(op)) {
        if (!value(id))
          return Error{fmt::format("op {} ({}) reads a tensor that nothing made", i, forward_.name(op)), "", ""};
        inputs.push_back(value(id));
      }
      OpCall call{tracer_, autocast_, target_, forward_.name(op), inputs, forward_.attributes(op), {}};
      const auto outputs = forward_.outputs(op);
      for (const TensorId id : outputs) {
        const auto shape = forward_.shape(id);
        call.results.emplace_back(Shape(shape.begin(), shape.end()), forward_.tensor(id).dtype);
      }
      Values results = lower(call);
      CHECK(results.size() == outputs.size(), "lowering of " + forward_.name(op) + " gave a wrong number of results");
      for (size_t k = 0; k < outputs.size(); ++k) {
        CHECK(results[k]->sizes == call.results[k].first, "lowering of " + forward_.name(op) + " gave another shape");
        value(outputs[k]) = std::move(results[k]);
      }
      inputs.clear();
      drop_finished(op, i);
    }
    tracer_.set_module("");
    return {};
  }

  // Cross entropy. Its log-softmax keeps the type of the logits; under autocast the negative log-likelihood is float32.
  Status run_loss_and_backward() {
    if (forward_.results().empty()) return Error{"the model has no result to compute a loss of", "", ""};
    Value logits = value(forward_.results().front());
    if (!logits || !is_floating(logits->dtype) || logits->sizes.empty()) {
      return Error{"the model's first result is not a floating-point tensor with dimensions", "",
                   "put the logits first among the results"};
    }
    if (logits->sizes.size() == 1) logits = aten::unsqueeze(tracer_, logits, 0);
    const bool per_pixel = logits->sizes.size() == 4;
    Shape target_sizes(logits->sizes.begin(), logits->sizes.end() - 1);
    if (per_pixel) target_sizes = {logits->sizes[0], logits->sizes[2], logits->sizes[3]};
    Value target = tracer_.root(Root::input, "target", DType::int64, target_sizes, contiguous_strides(target_sizes));
    if (!per_pixel && logits->sizes.size() > 2) {
      logits = aten::reshape(tracer_, logits, {-1, logits->sizes.back()});
      target = aten::reshape(tracer_, target, {-1});
    }
    if (input_.flavour == "hf") value(forward_.results().front()) = nullptr;
    Value log_probabilities = aten::log_softmax(tracer_, logits, 1);
    if (input_.flavour == "hf") logits = nullptr;
    log_probabilities = autocast_.widen(log_probabilities);
    const Value loss = aten::nll_loss(tracer_, log_probabilities, target);
    log_probabilities = nullptr;
    if (!needs_gradient(loss)) return Error{"the loss depends on no parameter", "", "nothing would be trained"};
    autocast_.forget_parameters();
    tracer_.begin_backward();
    const Value seed = tracer_.fresh(loss->dtype, {});  // held by the caller until the pass is over
    tracer_.emit("aten.ones_like.default", {loss}, {seed}, {{"pin_memory", false}});
    tracer_.backward(loss, seed);
    kept_ = {logits, loss};
    return {};
  }

  const Graph& forward_;
  const InputSpec& input_;
  const TrainingSetup& setup_;
  const DispatchTarget& target_;
  Tracer tracer_;
  Autocast autocast_;
  Values values_;  // by tensor of the forward graph
  Values parameters_;
  Values kept_;  // the loop's own variables: logits and loss live until the iteration ends
  std::vector<size_t> last_use_;
};

}  // namespace

Result<Graph> derive_iteration(const Graph& forward, const InputSpec& input, const TrainingSetup& setup,
                               const DispatchTarget& target) {
  if (forward.op_count() > target.most_ops) {
    return Error{fmt::format("the model has {} ops; at most {} can be derived", forward.op_count(), target.most_ops),
                 "", "predict a part of the model"};
  }
  return IterationBuilder(forward, input, setup, target).run();
}

}  // namespace forerun::derive
