#include "graph/training_run.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/nearest.h"
#include "base/options_text.h"

namespace forerun {
namespace {

template <class Enum, size_t N>
using Names = std::array<std::pair<Enum, std::string_view>, N>;

constexpr Names<InputKind, 4> kInputKinds = {{{InputKind::image, "image"},
                                              {InputKind::tokens, "tokens"},
                                              {InputKind::dense, "dense"},
                                              {InputKind::flat, "flat"}}};
constexpr Names<Precision, 7> kPrecisions = {{{Precision::fp32, "fp32"},
                                              {Precision::tf32, "tf32"},
                                              {Precision::amp_bf16, "amp_bf16"},
                                              {Precision::amp_fp16, "amp_fp16"},
                                              {Precision::bf16, "bf16"},
                                              {Precision::fp16, "fp16"},
                                              {Precision::amp_fp8, "amp_fp8"}}};
constexpr Names<Checkpointing, 3> kCheckpointings = {
    {{Checkpointing::none, "none"}, {Checkpointing::block, "block"}, {Checkpointing::selective, "selective"}}};
constexpr Names<OptimizerKind, 10> kOptimizers = {{{OptimizerKind::sgd, "SGD"},
                                                   {OptimizerKind::adam, "Adam"},
                                                   {OptimizerKind::adamw, "AdamW"},
                                                   {OptimizerKind::rmsprop, "RMSprop"},
                                                   {OptimizerKind::adagrad, "Adagrad"},
                                                   {OptimizerKind::adafactor, "Adafactor"},
                                                   {OptimizerKind::lion, "Lion"},
                                                   {OptimizerKind::adamw_8bit, "AdamW8bit"},
                                                   {OptimizerKind::muon, "Muon"},
                                                   {OptimizerKind::other, "other"}}};
constexpr Names<OptimizerImpl, 3> kImpls = {
    {{OptimizerImpl::forloop, "forloop"}, {OptimizerImpl::foreach, "foreach"}, {OptimizerImpl::fused, "fused"}}};
constexpr Names<Attention, 3> kAttentions = {
    {{Attention::sdpa, "sdpa"}, {Attention::flash, "flash"}, {Attention::eager, "eager"}}};
constexpr Names<CompileMode, 5> kCompileModes = {
    {{CompileMode::none, "none"},
     {CompileMode::standard, "default"},
     {CompileMode::reduce_overhead, "reduce-overhead"},
     {CompileMode::max_autotune, "max-autotune"},
     {CompileMode::autotune_without_graphs, "max-autotune-no-cudagraphs"}}};
constexpr Names<WeightFormat, 3> kFormats = {
    {{WeightFormat::nf4, "nf4"}, {WeightFormat::fp4, "fp4"}, {WeightFormat::int8, "int8"}}};
constexpr Names<DType, 3> kComputeTypes = {
    {{DType::bfloat16, "bf16"}, {DType::float16, "fp16"}, {DType::float32, "fp32"}}};
constexpr Names<Backend, 2> kBackends = {{{Backend::cuda, "cuda"}, {Backend::generic, "generic"}}};

template <class Enum, size_t N>
std::string_view name_in(const Names<Enum, N>& names, Enum wanted) {
  for (const auto& [value, name] : names) {
    if (value == wanted) return name;
  }
  return "?";
}

bool same_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

template <class Enum, size_t N>
std::optional<Enum> value_in(const Names<Enum, N>& names, std::string_view wanted) {
  for (const auto& [value, name] : names) {
    if (same_ignoring_case(name, wanted)) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(InputKind kind) { return name_in(kInputKinds, kind); }
std::string_view name_of(Precision precision) { return name_in(kPrecisions, precision); }
std::string_view name_of(OptimizerKind kind) { return name_in(kOptimizers, kind); }
std::string_view name_of(OptimizerImpl impl) { return name_in(kImpls, impl); }
std::string_view name_of(Backend backend) { return name_in(kBackends, backend); }
std::optional<InputKind> input_kind_named(std::string_view name) { return value_in(kInputKinds, name); }
std::optional<Precision> precision_named(std::string_view name) { return value_in(kPrecisions, name); }

Result<Precision> parse_precision(const std::string& name) {
  if (const auto known = precision_named(name)) return *known;
  if (same_ignoring_case(name, "bfloat16")) return Precision::bf16;
  if (same_ignoring_case(name, "float16")) return Precision::fp16;
  if (same_ignoring_case(name, "fp8")) return Precision::amp_fp8;
  for (const char* open : {"amp", "half"}) {
    if (!same_ignoring_case(name, open)) continue;
    return Error{
        "'" + name + "' may mean several things", "precision",
        "amp_bf16 and amp_fp16 are autocast with float32 weights (torch.autocast), bf16 and fp16 are weights of "
        "that type"};
  }
  std::vector<std::string> names;
  for (const auto& [value, known] : kPrecisions) names.emplace_back(known);
  return Error{"there is no precision '" + name + "'", "", did_you_mean(name, names)};
}

DType weight_type(Precision precision) {
  return precision == Precision::bf16   ? DType::bfloat16
         : precision == Precision::fp16 ? DType::float16
                                        : DType::float32;
}

DType product_type(Precision precision) {
  if (precision == Precision::amp_bf16 || precision == Precision::amp_fp8) return DType::bfloat16;
  return precision == Precision::amp_fp16 ? DType::float16 : weight_type(precision);
}

bool is_autocast(Precision precision) {
  return precision == Precision::amp_bf16 || precision == Precision::amp_fp16 || precision == Precision::amp_fp8;
}

bool is_half(Precision precision) { return is_autocast(precision) || weight_type(precision) != DType::float32; }

std::string_view name_of(Checkpointing checkpointing) { return name_in(kCheckpointings, checkpointing); }
std::optional<Checkpointing> checkpointing_named(std::string_view name) { return value_in(kCheckpointings, name); }
std::string_view name_of(Attention attention) { return name_in(kAttentions, attention); }
std::optional<Attention> attention_named(std::string_view name) { return value_in(kAttentions, name); }

std::string_view name_of(CompileMode mode) { return name_in(kCompileModes, mode); }

Result<CompileMode> parse_compile_mode(const std::string& name) {
  if (const auto known = value_in(kCompileModes, name)) return *known;
  std::string names;
  for (const auto& [value, known] : kCompileModes) names += (names.empty() ? "" : ", ") + std::string(known);
  return Error{"torch.compile has no mode '" + name + "'", "--compile", "known: " + names};
}

std::string text_of(const QuantizeSpec& spec) {
  if (!spec.any()) return "";
  std::string text(name_in(kFormats, spec.format));
  if (spec.nested) text += ":double";
  if (spec.compute) text += ":compute=" + std::string(name_in(kComputeTypes, *spec.compute));
  return text;
}

Result<QuantizeSpec> parse_quantize(const std::string& text) {
  const char* remedy = "write nf4, fp4 or int8; of 4 bits also nf4:double and nf4:compute=bf16";
  const auto refuse = [&](const std::string& what) { return Error{what, "--quantize", remedy}; };
  const std::vector<std::string_view> parts = split_list(text, ":");
  for (const char* open : {"4bit", "int4", "load_in_4bit"}) {
    if (same_ignoring_case(parts[0], open)) {
      return refuse("'" + text +
                    "' may mean nf4 or fp4 (fp4 where BitsAndBytesConfig is not told bnb_4bit_quant_type)");
    }
  }
  if (same_ignoring_case(text, "none")) return QuantizeSpec{};
  const auto format = value_in(kFormats, parts[0]);
  if (!format) return refuse("weights cannot be quantized to '" + std::string(parts[0]) + "'");
  QuantizeSpec spec{.format = *format};
  for (size_t i = 1; i < parts.size(); ++i) {
    const auto option = split_key_value(parts[i]);
    const bool computes = option && option->first == "compute";
    if (computes) spec.compute = value_in(kComputeTypes, option->second);
    if (parts[i] == "double") spec.nested = true;
    if (parts[i] != "double" && !(computes && spec.compute)) {
      return refuse("'" + std::string(parts[i]) + "' says nothing about quantized weights");
    }
  }
  if (spec.format == WeightFormat::int8 && (spec.nested || spec.compute)) {
    return refuse("int8 weights have one scale a row, and products of 8 bits");
  }
  return spec;
}

std::optional<OptimizerKind> optimizer_named(std::string_view name) { return value_in(kOptimizers, name); }
std::optional<OptimizerImpl> optimizer_impl_named(std::string_view name) { return value_in(kImpls, name); }
std::optional<Backend> backend_named(std::string_view name) { return value_in(kBackends, name); }

}  // namespace forerun
