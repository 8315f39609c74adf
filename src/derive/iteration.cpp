#include "derive/iteration.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <set>

#include "derive/checkpoint_stretches.h"
#include "derive/forward_pass.h"
#include "derive/lora.h"
#include "derive/optimizer.h"
#include "derive/update_steps.h"

namespace forerun::derive {
namespace {

// Sums of sizes and times stay far from overflow below this.
constexpr double kPebi = 1024.0 * 1024.0 * 1024.0 * 1024.0 * 1024.0;
constexpr double kMostBytes = 16 * kPebi;
constexpr int64_t kMostMicroBatches = 4096;
constexpr double kMostForwardOps = 2'000'000;  // of all micro-batches

bool is_recurrent(const std::string& name) {
  return name == "aten.lstm.input" || name == "aten.gru.input" || name == "aten.rnn_tanh.input" ||
         name == "aten.rnn_relu.input";
}

std::optional<DType> autocast_type(Precision precision) {
  return is_autocast(precision) ? std::optional(product_type(precision)) : std::nullopt;
}

class IterationBuilder {
 public:
  IterationBuilder(const Graph& forward, const InputSpec& input, const TrainingSetup& setup,
                   const DispatchTarget& target)
      : forward_(forward),
        input_(input),
        setup_(setup),
        autocast_(tracer_, autocast_type(setup.precision)),
        pass_(forward, tracer_, autocast_, target, setup) {}

  // Plays a stage of a pipeline in place of the whole model.
  void play(const StageForward& stage, const StageSchedule& schedule) {
    stage_ = &stage;
    schedule_ = schedule;
    received_.insert(stage.received.begin(), stage.received.end());
  }

  Result<Graph> run() {
    if (Status status = check(); !status.ok()) return status.error();
    make_flat_weights();
    if (Status status = find_quantized(); !status.ok()) return status.error();
    make_roots();
    if (Status status = find_fp8(); !status.ok()) return status.error();
    if (Status status = make_adapters(); !status.ok()) return status.error();
    if (trained_.empty()) {
      return parameters_.empty() ? Error{"the loss depends on no parameter", "", "nothing would be trained"}
                                 : Error{"every parameter is frozen", "--freeze", "leave some to be trained"};
    }
    const std::vector<ParameterSlot> slots = make_optimizer_state(
        tracer_, trained_, setup_.optimizer, [matrices = matrices()](const Value& v) { return matrices.contains(v); });
    if (setup_.precision == Precision::amp_fp16) scaler_.emplace(tracer_);
    if (setup_.ema) average_.emplace(tracer_, parameters_, buffers_);
    if (Status status = stage_ != nullptr ? run_stage() : run_passes(); !status.ok()) return status.error();
    run_update(slots);
    if (tracer_.made_bytes() > kMostBytes) {
      return Error{
          fmt::format("an iteration would make tensors of {:.3g} PiB in all", tracer_.made_bytes() / kPebi), "",
          fmt::format("choose a smaller batch, image or length: at most {:.0f} PiB are simulated", kMostBytes / kPebi)};
    }
    tracer_.graph().set_parameter_count(parameter_count_);
    return tracer_.finish();
  }

 private:
  Value& value(TensorId id) { return pass_.value(id); }

  Status run_passes() {
    for (int64_t i = 0; i < setup_.accumulate; ++i) {
      tracer_.begin_forward();
      if (Status status = pass_.run(); !status.ok()) return status;
      const Result<Value> loss = make_loss();
      if (!loss) return loss.error();
      run_backward(*loss);
    }
    return {};
  }

  // A micro-batch of a stage between its two passes.
  struct InFlight {
    Values received, results;
    std::vector<std::shared_ptr<Value>> gradients;  // of what was received
    Value loss;                                     // of the last stage
  };

  Status run_stage() {
    std::deque<InFlight> flying;
    for (int64_t i = 0; i < schedule_.micro_batches; ++i) {
      tracer_.begin_forward();
      Result<InFlight> passed = run_forward();
      if (!passed) return passed.error();
      flying.push_back(std::move(*passed));
      if (static_cast<int64_t>(flying.size()) < schedule_.ahead) continue;
      run_backward(flying.front());
      flying.pop_front();
    }
    for (; !flying.empty(); flying.pop_front()) run_backward(flying.front());
    return {};
  }

  // Another stage's tensor, or a gradient of one.
  Value receive(DType dtype, const Shape& sizes) {
    Value made = tracer_.fresh(dtype, sizes);
    tracer_.emit("c10d.recv_.default", {}, {made});
    return made;
  }

  Result<InFlight> run_forward() {
    InFlight passed;
    for (const TensorId id : stage_->received) {
      const auto shape = forward_.shape(id);
      const DType stated = forward_.tensor(id).dtype;
      value(id) =
          receive(stated == DType::float32 ? weight_type(setup_.precision) : stated, {shape.begin(), shape.end()});
      passed.received.push_back(value(id));
      passed.gradients.push_back(tracer_.watch_gradient(value(id)));
    }
    if (Status status = pass_.run(); !status.ok()) return status.error();
    if (stage_->last) {
      Result<Value> loss = make_loss();
      if (!loss) return loss.error();
      passed.loss = std::move(*loss);
    } else {
      for (const TensorId id : forward_.results()) passed.results.push_back(std::move(value(id)));
      autocast_.forget_parameters();
    }
    for (const TensorId id : stage_->received) value(id) = nullptr;
    return passed;
  }

  void run_backward(InFlight& passed) {
    if (stage_->last) {
      run_backward(passed.loss);
      return;
    }
    tracer_.begin_backward();
    std::vector<Edge> edges;
    Values seeds;
    for (const Value& result : passed.results) {
      if (!needs_gradient(result)) continue;
      edges.push_back(Tracer::edge_to(result));
      seeds.push_back(receive(result->dtype, result->sizes));
    }
    tracer_.backward(edges, std::move(seeds));
  }

  [[nodiscard]] Status check() const {
    if (setup_.optimizer.kind == OptimizerKind::other) {
      return Error{"the optimizer is not one that can be derived", "", "use SGD, Adam, AdamW, RMSprop or Adagrad"};
    }
    if (setup_.accumulate < 1 || setup_.accumulate > kMostMicroBatches) {
      return Error{fmt::format("{} micro-batches cannot make an iteration", setup_.accumulate), "--accumulate",
                   fmt::format("give 1 to {}", kMostMicroBatches)};
    }
    if (static_cast<double>(setup_.accumulate) * static_cast<double>(forward_.op_count()) > kMostForwardOps) {
      return Error{
          fmt::format("{} micro-batches of {} ops each are too many to derive", setup_.accumulate, forward_.op_count()),
          "--accumulate", "accumulate fewer"};
    }
    if (setup_.checkpointing != Checkpointing::none && checkpoint_stretches(forward_).empty()) {
      return Error{"the model has no blocks to checkpoint: no layers of a list that have parts", "--checkpoint",
                   "train it without"};
    }
    return {};
  }

  [[nodiscard]] bool is_frozen(const std::string& name) const {
    if (setup_.lora.rank > 0) return true;
    return std::any_of(setup_.freeze.begin(), setup_.freeze.end(),
                       [&](const std::string& part) { return name.find(part) != std::string::npos; });
  }

  // model.to(weight type), and batches of it. Rotary frequencies are made in float32 whatever the weights are.
  [[nodiscard]] DType root_type(const std::string& name, DType stated) const {
    const bool weight = stated == DType::float32 && name.find("inv_freq") == std::string::npos;
    return weight ? weight_type(setup_.precision) : stated;
  }

  // Linear layers of few bits, before their roots are made.
  Status find_quantized() {
    if (!setup_.quantize.any()) return {};
    if (setup_.ema) {
      return Error{"no moving average of quantized weights is kept", "--ema", "leave it out, or --quantize"};
    }
    layers_ = quantized_layers(forward_);
    if (layers_.empty()) {
      return Error{"the model has no linear layers beside its last whose weights could be quantized", "--quantize",
                   "train it without"};
    }
    for (const auto& [number, layer] : layers_) {
      const auto inputs = forward_.inputs(forward_.ops()[number]);
      const TensorId weight = inputs[layer.operand + 1];
      quantized_[weight] = {.format = setup_.quantize.format,
                            .compute = setup_.quantize.compute.value_or(product_type(setup_.precision)),
                            .out = layer.out,
                            .in = layer.in};
      const std::optional<size_t> bias = bias_of(number, layer);
      if (bias) biases_.insert(inputs[*bias]);
      for (const TensorId id : {weight, bias ? inputs[*bias] : weight}) {
        const std::string& name = root_name(id);
        if (is_frozen(name)) continue;
        return Error{fmt::format("{} would be trained, which quantized weights and their biases cannot be", name),
                     "--quantize", "add --lora RANK, which freezes all weights, or --freeze them"};
      }
    }
    return {};
  }

  // Linear layers with products of 8 bits, and what they multiply in.
  Status find_fp8() {
    if (setup_.precision != Precision::amp_fp8) return {};
    if (setup_.lora.rank > 0 || setup_.quantize.any()) {
      return Error{"adapters and weights of few bits are not predicted beside products in fp8",
                   "--precision amp_fp8 with --lora, --quantize", "leave them out, or take amp_bf16"};
    }
    auto layers = fp8_layers(forward_, stage_ != nullptr && !stage_->last);
    if (!layers) return layers.error();
    if (layers->empty() && stage_ == nullptr) {
      return Error{"the model has no linear layers beside its last that fp8 units could multiply",
                   "--precision amp_fp8", "take amp_bf16"};
    }
    pass_.set_fp8(std::move(*layers));
    tracer_.root(Root::buffer, "transformer_engine.workspace", DType::uint8, {kFp8WorkspaceBytes}, {1});
    return {};
  }

  // Which input of the op is its bias: addmm has it first.
  [[nodiscard]] std::optional<size_t> bias_of(size_t op, const LinearLayer& layer) const {
    if (layer.operand > 0) return 0;
    return forward_.ops()[op].input_count > 2 ? std::optional<size_t>(2) : std::nullopt;
  }

  [[nodiscard]] const std::string& root_name(TensorId id) const {
    return forward_.names()[forward_.storage(forward_.tensor(id).storage).root_name];
  }

  // cuDNN wants all weights of a recurrent layer in one buffer; nn.LSTM and its kin flatten them at construction.
  void make_flat_weights() {
    for (const Op& op : forward_.ops()) {
      if (!is_recurrent(forward_.name(op))) continue;
      const auto weights = forward_.inputs(op).subspan(1);
      int64_t count = 0;
      for (const TensorId id : weights) count += forward_.element_count(id);
      const Storage& last = forward_.storage(forward_.tensor(weights.back()).storage);
      const std::string& name = forward_.names()[last.root_name];
      const Value flat =
          tracer_.root(Root::parameter, name, root_type(name, forward_.tensor(weights.front()).dtype), {count}, {1});
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
      Value& root = value(TensorId(i));
      if (storage.root == Root::none || root || received_.contains(TensorId(i))) continue;
      const auto shape = forward_.shape(TensorId(i));
      const Shape sizes(shape.begin(), shape.end());
      const std::string& name = forward_.names()[storage.root_name];
      if (const auto few_bits = quantized_.find(TensorId(i)); few_bits != quantized_.end()) {
        quantize_root(tracer_, name, setup_.quantize.nested, few_bits->second);
        root = few_bits->second.packed;
        continue;
      }
      // A layer of 4 bits turns its bias to the type of its product, for good.
      const bool own_type = biases_.contains(TensorId(i)) && setup_.quantize.format != WeightFormat::int8;
      const DType dtype = own_type ? quantized_.begin()->second.compute : root_type(name, tensor.dtype);
      root = tracer_.root(storage.root, name, dtype, sizes, root_strides(storage.root, sizes));
      if (storage.root == Root::buffer) buffers_.push_back(root);
    }
    for (const TensorId id : forward_.parameters()) {
      const Storage& storage = forward_.storage(forward_.tensor(id).storage);
      parameters_.push_back(value(id));
      if (is_frozen(forward_.names()[storage.root_name])) continue;
      train(value(id));
    }
    parameter_count_ = forward_.parameter_count();
    for (const auto& [number, layer] : layers_) {
      const TensorId id = forward_.inputs(forward_.ops()[number])[layer.operand + 1];
      pass_.add_quantized(number, {layer.operand, bias_of(number, layer), quantized_.at(id)});
    }
  }

  void train(const Value& parameter) {
    tracer_.make_parameter(parameter);
    tracer_.graph().add_parameter(parameter->id);
    trained_.push_back(parameter);
  }

  Status make_adapters() {
    if (setup_.lora.rank == 0) return {};
    const auto layers = adapted_layers(forward_, setup_.lora);
    if (!layers) return layers.error();
    for (const auto& entry : *layers) {
      const LinearLayer& layer = entry.second;
      const int64_t rank = setup_.lora.rank;
      if (rank > std::min(layer.in, layer.out)) {
        return Error{
            fmt::format("adapters of rank {} are wider than {} ({} to {})", rank, layer.module, layer.in, layer.out),
            "--lora", "choose a smaller rank"};
      }
      const auto weight = [&](const char* name, const Shape& sizes) {
        Value made =
            tracer_.root(Root::parameter, layer.module + name, DType::float32, sizes, contiguous_strides(sizes));
        train(made);
        parameters_.push_back(made);
        parameter_count_ += sizes[0] * sizes[1];
        return made;
      };
      Adapter adapter{entry.first, layer, weight(".lora_A.weight", {rank, layer.in}),
                      weight(".lora_B.weight", {layer.out, rank})};
      pass_.add_adapter(entry.first, std::move(adapter));
    }
    return {};
  }

  // The weights of linear layers but the last, which are Muon's.
  std::set<Value> matrices() {
    std::set<Value> found;
    if (setup_.optimizer.kind != OptimizerKind::muon) return found;
    const auto layers = adapted_layers(forward_, {.rank = 1, .targets = {std::string(kAllLinear)}});
    if (!layers) return found;
    for (const auto& [op, layer] : *layers) {
      found.insert(value(forward_.inputs(forward_.ops()[op])[layer.operand + 1]));
    }
    return found;
  }

  // Cross entropy. Its log-softmax keeps the type of the logits; under autocast the negative log-likelihood is float32.
  Value cross_entropy() {
    Value logits = value(forward_.results().front());
    if (logits->sizes.size() == 1) logits = aten::unsqueeze(tracer_, logits, 0);
    const bool per_pixel = logits->sizes.size() == 4;
    Shape target_sizes(logits->sizes.begin(), logits->sizes.end() - 1);
    if (per_pixel) target_sizes = {logits->sizes[0], logits->sizes[2], logits->sizes[3]};
    if (!labels_) {
      labels_ = tracer_.root(Root::input, "target", DType::int64, target_sizes, contiguous_strides(target_sizes));
    }
    Value target = labels_;
    if (!per_pixel && logits->sizes.size() > 2) {
      logits = aten::reshape(tracer_, logits, {-1, logits->sizes.back()});
      target = aten::reshape(tracer_, target, {-1});
    }
    const bool own_loss = input_.flavour == "hf";  // the model computes it, within its forward pass
    const bool widens = rules_of(setup_.loop).widens_results && is_autocast(setup_.precision);
    if (widens) logits = autocast_.widen(logits);  // by the loop, or by the model's own loss
    const bool lets_go = own_loss || setup_.accumulate > 1;
    if (lets_go && !widens) value(forward_.results().front()) = nullptr;
    Value log_probabilities = aten::log_softmax(tracer_, logits, 1);
    if (own_loss) logits = nullptr;
    log_probabilities = autocast_.widen(log_probabilities);
    Value loss = aten::nll_loss(tracer_, log_probabilities, target);
    log_probabilities = nullptr;
    if (widens && own_loss) autocast_.widen(value(forward_.results().front()));  // handed back, and nobody takes it
    if (lets_go) value(forward_.results().front()) = nullptr;
    kept_ = {logits};
    return loss;
  }

  Result<Value> make_loss() {
    kept_.clear();  // the variables of the micro-batch before are assigned anew
    pass_.forget_earlier_graph();
    if (forward_.results().empty()) return Error{"the model has no result to compute a loss of", "", ""};
    const Value& result = value(forward_.results().front());
    if (!result || !is_floating(result->dtype)) {
      return Error{"the model's first result is not a floating-point tensor", "",
                   "put the logits, or the loss, first among the results"};
    }
    Value loss = result->sizes.empty() ? result : cross_entropy();
    if (!needs_gradient(loss)) return Error{"the loss depends on no parameter", "", "nothing would be trained"};
    if (setup_.accumulate > 1) loss = aten::unary(tracer_, "aten.div.Tensor", loss, {{"other", setup_.accumulate}});
    autocast_.forget_parameters();
    if (scaler_) loss = scaler_->scale(loss);
    return loss;
  }

  void run_backward(const Value& loss) {
    tracer_.begin_backward();
    const Value seed = tracer_.fresh(loss->dtype, {});  // held by the caller until the pass is over
    tracer_.emit("aten.ones_like.default", {loss}, {seed}, {{"pin_memory", false}});
    tracer_.backward(loss, seed);
    kept_.push_back(loss);
  }

  void run_update(const std::vector<ParameterSlot>& slots) {
    tracer_.begin_update();
    Values gradients;
    for (const Value& parameter : trained_) {
      if (Value g = tracer_.gradient_of(parameter)) gradients.push_back(std::move(g));
    }
    const bool fused = available_impl(setup_.optimizer) == OptimizerImpl::fused;
    const bool clips = setup_.clip_norm > 0;
    if (scaler_) scaler_->unscale(gradients, !fused || clips);
    if (clips) clip_gradients(tracer_, gradients);
    gradients.clear();
    if (scaler_) scaler_->wait_for_finding(fused);
    update(tracer_, slots, setup_.optimizer);
    if (scaler_) scaler_->update();
    if (average_) average_->update();
  }

  const Graph& forward_;
  const InputSpec& input_;
  const TrainingSetup& setup_;
  Tracer tracer_;
  Autocast autocast_;
  ForwardPass pass_;
  Values parameters_;  // all of them, adapters too
  Values trained_;
  Values buffers_;
  int64_t parameter_count_ = 0;
  Value labels_;
  std::optional<LossScaler> scaler_;
  std::optional<MovingAverage> average_;
  std::map<size_t, LinearLayer> layers_;           // that are quantized, by op
  std::map<TensorId, QuantizedWeight> quantized_;  // by weight of the forward graph
  std::set<TensorId> biases_;                      // of the layers
  const StageForward* stage_ = nullptr;            // null: the whole model
  StageSchedule schedule_;
  std::set<TensorId> received_;
  Values kept_;  // the loop's own variables: logits and loss live until the iteration ends
};

}  // namespace

namespace {

Status check_derivation(const Graph& forward, const TrainingSetup& setup, const DispatchTarget& target) {
  if (setup.attention == Attention::flash && !is_half(setup.precision)) {
    return Error{fmt::format("flash attention takes half precision; this is {}", name_of(setup.precision)),
                 "--attention", "add --precision amp_bf16 or bf16, or leave the choice to sdpa"};
  }
  if (forward.op_count() > target.most_ops) {
    return Error{fmt::format("the model has {} ops; at most {} can be derived", forward.op_count(), target.most_ops),
                 "", "predict a part of the model"};
  }
  return {};
}

DispatchTarget chosen_target(const DispatchTarget& target, const TrainingSetup& setup) {
  DispatchTarget chosen = target;
  if (setup.attention == Attention::flash) chosen.cudnn_attention = false;
  return chosen;
}

}  // namespace

Result<Graph> derive_iteration(const Graph& forward, const InputSpec& input, const TrainingSetup& setup,
                               const DispatchTarget& target) {
  if (Status status = check_derivation(forward, setup, target); !status.ok()) return status.error();
  const DispatchTarget chosen = chosen_target(target, setup);
  return IterationBuilder(forward, input, setup, chosen).run();
}

Result<Graph> derive_stage(const StageForward& stage, const StageSchedule& schedule, const InputSpec& input,
                           const TrainingSetup& setup, const DispatchTarget& target) {
  if (Status status = check_derivation(stage.graph, setup, target); !status.ok()) return status.error();
  TrainingSetup played = setup;
  played.accumulate = schedule.micro_batches;
  const DispatchTarget chosen = chosen_target(target, played);
  IterationBuilder builder(stage.graph, input, played, chosen);
  builder.play(stage, schedule);
  return builder.run();
}

}  // namespace forerun::derive
