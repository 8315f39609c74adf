// TrainingRun: a training iteration with what it is: model, input, how it is trained, on which machine.
//
// This is the part of a run record that a predictor may see; measured fields have no place here.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"
#include "graph/training_loop.h"

namespace forerun {

// What one iteration is fed. `image`: [batch, channels, size, size], a class each; `dense`: the same, a class per pixel;
// `tokens`: [batch, length], a token of `classes` each; `flat`: [batch, channels] features.
enum class InputKind : uint8_t { image, tokens, dense, flat };

struct InputSpec {
  InputKind kind = InputKind::image;
  int64_t batch = 1;
  int64_t channels = 3;    // of images; features of flat inputs
  int64_t size = 224;      // height and width of images; length of token sequences
  int64_t classes = 1000;  // size of the vocabulary for tokens
  std::string flavour;     // of tokens: "lm", or "hf" where the loop lets go of the logits once the loss has them
};

// `amp_*`: torch.autocast with float32 weights, in float16 with a GradScaler; `amp_fp8`: autocast in bfloat16 with the products of
// linear layers in 8 bits (derive/fp8_linear.h); `bf16` and `fp16`: weights, gradients and optimizer state are of that type, nothing is
// kept in float32.
enum class Precision : uint8_t { fp32, tf32, amp_bf16, amp_fp16, bf16, fp16, amp_fp8 };
// `other`: one that recorded runs may use and the derivation does not know; its ops are in the record. adamw_8bit is that of
// bitsandbytes; muon has its matrices with adamw for the rest.
enum class OptimizerKind : uint8_t { sgd, adam, adamw, rmsprop, adagrad, other, adafactor, lion, adamw_8bit, muon };
enum class OptimizerImpl : uint8_t { forloop, foreach, fused };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::sgd;
  OptimizerImpl impl = OptimizerImpl::foreach;
  double learning_rate = 1e-3;
  double momentum = 0;
  double weight_decay = 0;
  friend auto operator<=>(const OptimizerSpec&, const OptimizerSpec&) = default;
};

// What a block of the model keeps for its backward pass: all of it; its inputs alone (torch.utils.checkpoint around each layer
// of a list); or also the results of products, convolutions and attention (create_selective_checkpoint_contexts).
enum class Checkpointing : uint8_t { none, block, selective };

// Low-rank adapters beside frozen linear layers, as the peft library puts them in.
struct LoraSpec {
  int64_t rank = 0;                  // 0: none
  std::vector<std::string> targets;  // last parts of modules' names ("q_proj"); empty: those of queries and values
  double dropout = 0;
  friend auto operator<=>(const LoraSpec&, const LoraSpec&) = default;
};

// Frozen weights of linear layers in 4 or 8 bits, as bitsandbytes keeps them and transformers' BitsAndBytesConfig puts them in:
// nf4 and fp4 in blocks of 64 with a scale each, int8 in rows (LLM.int8()).
enum class WeightFormat : uint8_t { plain, nf4, fp4, int8 };

struct QuantizeSpec {
  WeightFormat format = WeightFormat::plain;
  bool nested = false;           // the scales are quantized too ("double quantization"; 4 bits alone)
  std::optional<DType> compute;  // of their products (4 bits alone); nothing: that of products in the precision
  [[nodiscard]] bool any() const { return format != WeightFormat::plain; }
  friend auto operator<=>(const QuantizeSpec&, const QuantizeSpec&) = default;
};

// How attention is computed where the model's source leaves it open: as scaled_dot_product_attention decides, by its flash kernels alone,
// or spelled out as products and a softmax, which a model of the zoo takes as its parameter `attention`.
enum class Attention : uint8_t { sdpa, flash, eager };

// Whether the model is under torch.compile, and in which of its modes: `standard` is its "default", a word that C++ keeps for itself.
// `reduce_overhead` launches compiled graphs as CUDA graphs, `max_autotune` also tries templates for products, and
// `autotune_without_graphs` does that alone ("max-autotune-no-cudagraphs").
enum class CompileMode : uint8_t { none, standard, reduce_overhead, max_autotune, autotune_without_graphs };
[[nodiscard]] constexpr bool launches_graphs(CompileMode mode) {
  return mode == CompileMode::reduce_overhead || mode == CompileMode::max_autotune;
}
[[nodiscard]] constexpr bool tunes_products(CompileMode mode) {
  return mode == CompileMode::max_autotune || mode == CompileMode::autotune_without_graphs;
}

struct TrainingSetup {
  Precision precision = Precision::fp32;
  OptimizerSpec optimizer;
  bool channels_last = false;
  int64_t accumulate = 1;  // micro-batches an iteration: the graph holds them all
  Checkpointing checkpointing = Checkpointing::none;
  LoraSpec lora;                    // where there are adapters, nothing else is trained
  std::vector<std::string> freeze;  // parameters whose names hold one of these parts are not trained
  QuantizeSpec quantize;            // of linear layers but the last; frozen ones alone can be
  double clip_norm = 0;             // clip_grad_norm_ to it; 0: gradients are not clipped
  bool ema = false;                 // an exponential moving average of the weights is kept (AveragedModel)
  TrainingLoop loop = TrainingLoop::plain;
  Attention attention = Attention::sdpa;
  CompileMode compile = CompileMode::none;
  friend auto operator<=>(const TrainingSetup&, const TrainingSetup&) = default;
};

[[nodiscard]] bool is_autocast(Precision precision);
[[nodiscard]] bool is_half(Precision precision);  // its products are of 16 bits, or fewer
// The type of the weights.
[[nodiscard]] DType weight_type(Precision precision);
// The type of products; of amp_fp8, of those that are not of 8 bits.
[[nodiscard]] DType product_type(Precision precision);

// Which device the ops were dispatched for: a CUDA one, or none, so that they are yet to be mapped to their CUDA forms.
enum class Backend : uint8_t { cuda, generic };

// How fast the host issues ops, measured beside a run: microseconds a call by kind of op ("view", "add", "matmul",
// "convolution", "foreach", ...). It says what the machine is like, and nothing about the run.
struct HostCalibration {
  std::vector<std::pair<std::string, double>> forward;
  std::vector<std::pair<std::string, double>> backward;
  [[nodiscard]] bool empty() const { return forward.empty() && backward.empty(); }
};

struct Environment {
  std::string gpu;  // "NVIDIA H200"; may be empty
  std::string torch;
  std::string cuda;
  int64_t cudnn = 0;
  std::string host;  // an opaque id of the machine
  std::string date;
  HostCalibration calibration;
};

// Where a compiled graph ends because it cannot be traced on.
struct GraphBreak {
  std::string module;
  std::string op;  // which runs eagerly, or with which the next graph begins
  std::string why;
  std::string where;  // "model.py:12", where Python code is known to break it
};

// What Dynamo made of a model when it was captured. Each forward op has the piece that it is compiled in (Op::piece).
struct DynamoTrace {
  std::string torch;    // the version
  std::string problem;  // why nothing is known; empty: all is
  int64_t graphs = 0;   // that are unlike; one that runs several times is several pieces
  std::vector<bool>
      masks;  // by call of attention in a forward pass: it gets a mask while it is traced; empty: nobody looked
  std::vector<GraphBreak> breaks;
};

// What the compiler made of an iteration, beside its ops.
struct CompiledParts {
  struct Pass {
    OpId first;                    // the ops of a pass stand together
    OpId end;                      // behind its last
    std::vector<StorageId> given;  // what it reads that is somewhere else every time: inputs, gradients from outside
  };
  std::vector<bool> inside;  // by op: of a compiled graph
  std::vector<Pass> passes;
  std::vector<GraphBreak> breaks;  // of a micro-batch
  int64_t graphs = 0;              // compiled: a forward and a backward one each
  int64_t nodes = 0;               // that were lowered
  int64_t kept_values = 0;         // for the backward pass, parameters and inputs not counted
  int64_t kept_bytes = 0;
  int64_t computed_again = 0;  // nodes
  bool loss_inside = false;    // the model computes its loss itself
};

struct TrainingRun {
  std::string id;
  std::string family;
  std::string arguments = "{}";  // JSON object of the family's parameters
  InputSpec input;
  TrainingSetup setup;
  Environment environment;
  Backend backend = Backend::cuda;
  std::vector<std::string>
      warnings;                      // what makes the record doubtful, by whoever captured it: stands before any answer
  std::vector<std::string> assumed;  // what was taken for granted when it was captured
  Graph graph;
  std::shared_ptr<const DynamoTrace> dynamo;      // null: Dynamo was not asked
  std::shared_ptr<const CompiledParts> compiled;  // where the graph is that of a compiled model; null: an eager one
};

std::string_view name_of(InputKind kind);
std::string_view name_of(Precision precision);
std::string_view name_of(OptimizerKind kind);  // PyTorch's class name: "SGD", "AdamW"
std::string_view name_of(OptimizerImpl impl);
std::string_view name_of(Checkpointing checkpointing);
std::string_view name_of(Attention attention);
std::string_view name_of(CompileMode mode);     // as torch.compile takes it
std::string text_of(const QuantizeSpec& spec);  // "nf4:double", as users write it; empty where nothing is quantized
std::string_view name_of(Backend backend);
std::optional<InputKind> input_kind_named(std::string_view name);
std::optional<Precision> precision_named(std::string_view name);
// As a user gives it; a name that could mean several things (bf16, amp) is an Error that says which there are.
Result<Precision> parse_precision(const std::string& name);
std::optional<OptimizerKind> optimizer_named(std::string_view name);  // any case; "momentum" is not a kind
std::optional<OptimizerImpl> optimizer_impl_named(std::string_view name);
std::optional<Checkpointing> checkpointing_named(std::string_view name);
// FORMAT[:double][:compute=bf16|fp16|fp32], or none; an Error says what there is.
Result<QuantizeSpec> parse_quantize(const std::string& text);
std::optional<Attention> attention_named(std::string_view name);
// An Error names the modes that there are.
Result<CompileMode> parse_compile_mode(const std::string& name);
std::optional<Backend> backend_named(std::string_view name);

}  // namespace forerun
