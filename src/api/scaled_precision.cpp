// The types of a model that is trained on many GPUs: what its products run in, and the bytes of its states.
#include <fmt/format.h>

#include <cmath>

#include "api/scaled_model.h"
#include "derive/precision_support.h"
#include "timeline/sharded_exchange.h"

namespace forerun {
namespace {

int64_t optimizer_bytes(const OptimizerSpec& optimizer) {
  switch (optimizer.kind) {
    case OptimizerKind::sgd: return optimizer.momentum != 0 ? 4 : 0;
    case OptimizerKind::adafactor: return 0;
    case OptimizerKind::adamw_8bit: return 2;
    case OptimizerKind::rmsprop:
    case OptimizerKind::lion:
    case OptimizerKind::muon:
    case OptimizerKind::adagrad: return 4;
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
    case OptimizerKind::other: return 8;
  }
  return 8;
}

}  // namespace

Unit scale_unit(Precision precision, const Device& gpu) {
  switch (precision) {
    case Precision::fp32: return Unit::fp32_matrix;
    case Precision::tf32: return Unit::tf32_tensor;
    case Precision::amp_bf16:
    case Precision::amp_fp16:
    case Precision::bf16:
    case Precision::fp16:
    case Precision::amp_fp8: break;  // products that are not of layers
  }
  return gpu.peak.bf16_tensor > 0 ? Unit::bf16_tensor : Unit::fp16_tensor;
}

std::string precision_name(const ScaledModel& model) {
  if (!model.transformer) return std::string(name_of(model.setup.precision));
  if (model.setup.precision == Precision::amp_fp8) return "fp8_main";
  return model.setup.precision == Precision::bf16 ? "bf16_main" : "fp16_main";
}

std::string precision_text(const ScaledModel& model, const Device& gpu) {
  if (model.transformer) {
    if (model.setup.precision == Precision::amp_fp8) {
      return "bfloat16 weights with a float32 copy for the optimizer, gradients added up in float32, products of the "
             "layers in fp8 (Transformer Engine), which reach the share of the fp8 peak that those in bfloat16 reach "
             "of theirs; embedding, head and attention in bfloat16";
    }
    const bool bfloat16 = model.setup.precision == Precision::bf16;
    return fmt::format(
        "{} weights and products with a float32 copy for the optimizer, as Megatron has it; gradients are "
        "added up in {}{}",
        bfloat16 ? "bfloat16" : "float16", bfloat16 ? "float32" : "float16",
        gpu.peak.bf16_tensor > 0 ? "" : "; the GPU has no bfloat16 units");
  }
  if (std::string caveat = derive::precision_caveat(model.setup.precision, gpu); !caveat.empty()) return caveat;
  return fmt::format("precision {}", name_of(model.setup.precision));
}

// A float32 gradient read, the float32 weight and the states read and written, the half-precision weight written.
int64_t update_bytes(const ScaledModel& model) { return 4 + 2 * 4 + 2 * optimizer_bytes(model.setup.optimizer) + 2; }

scale::StateBytes state_bytes(const ScaledModel& model) {
  const int64_t state = optimizer_bytes(model.setup.optimizer);
  if (model.transformer) {
    // A float32 copy of each weight. Of bfloat16 Megatron adds up gradients in float32; of float16 it does not, and
    // makes float32 ones of the sums for its optimizer.
    if (model.setup.precision != Precision::fp16) return {2, 4, 4 + state, 2};
    return {2, 2, 4 + 4 + state, 2};
  }
  const auto weight = static_cast<int64_t>(size_of(weight_type(model.setup.precision)));
  const double gathered = static_cast<double>(weight) * gathered_share(3, model.setup.precision);
  return {weight, weight, state * weight / 4, std::llround(gathered)};
}

}  // namespace forerun
