#include "graph/training_run.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/nearest.h"

namespace forerun {
namespace {

template <class Enum, size_t N>
using Names = std::array<std::pair<Enum, std::string_view>, N>;

constexpr Names<InputKind, 4> kInputKinds = {{{InputKind::image, "image"},
                                              {InputKind::tokens, "tokens"},
                                              {InputKind::dense, "dense"},
                                              {InputKind::flat, "flat"}}};
constexpr Names<Precision, 3> kPrecisions = {
    {{Precision::fp32, "fp32"}, {Precision::tf32, "tf32"}, {Precision::amp_bf16, "amp_bf16"}}};
constexpr Names<OptimizerKind, 6> kOptimizers = {{{OptimizerKind::sgd, "SGD"},
                                                  {OptimizerKind::adam, "Adam"},
                                                  {OptimizerKind::adamw, "AdamW"},
                                                  {OptimizerKind::rmsprop, "RMSprop"},
                                                  {OptimizerKind::adagrad, "Adagrad"},
                                                  {OptimizerKind::other, "other"}}};
constexpr Names<OptimizerImpl, 3> kImpls = {
    {{OptimizerImpl::forloop, "forloop"}, {OptimizerImpl::foreach, "foreach"}, {OptimizerImpl::fused, "fused"}}};
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
  const char* remedy =
      "amp_bf16 is autocast in bfloat16 with float32 weights (torch.autocast); others are fp32 and tf32";
  for (const char* pure : {"bf16", "bfloat16"}) {
    if (same_ignoring_case(name, pure)) {
      return Error{"'" + name + "' may mean weights in bfloat16, which are not modelled yet", "precision", remedy};
    }
  }
  for (const char* open : {"amp", "fp16", "float16", "half", "amp_fp16"}) {
    if (same_ignoring_case(name, open)) {
      return Error{"'" + name + "' may mean float16, which is not modelled yet", "precision", remedy};
    }
  }
  return Error{"there is no precision '" + name + "'", "", did_you_mean(name, {"fp32", "tf32", "amp_bf16"})};
}

std::optional<OptimizerKind> optimizer_named(std::string_view name) { return value_in(kOptimizers, name); }
std::optional<OptimizerImpl> optimizer_impl_named(std::string_view name) { return value_in(kImpls, name); }
std::optional<Backend> backend_named(std::string_view name) { return value_in(kBackends, name); }

}  // namespace forerun
