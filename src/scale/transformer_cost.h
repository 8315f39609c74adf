// What the blocks of a transformer cost on a GPU, its layers shared by the GPUs of a tensor group as Megatron does.
//
// Source: Shoeybi et al. (2019) for how layers are cut: the first product of attention and of the feed-forward layer by
// columns, the second by rows, heads dealt out, two all-reduces forward and two backward; the vocabulary dealt out. GPU
// time is products at a share of the peak (at least what their bytes take), attention's products and scores, and bytes
// of everything elementwise; the host's time to issue it is combined by a p-norm. Constants: efficiency.h. What is kept
// for the backward pass: Korthikanti et al. (2022), 34 + 5 as/h bytes per element. Left out: sequence parallelism,
// experts.
#pragma once

#include "device/device.h"
#include "scale/block.h"
#include "scale/efficiency.h"
#include "scale/network.h"
#include "scale/transformer.h"

namespace forerun::scale {

struct Arithmetic {
  Unit unit = Unit::bf16_tensor;
  int64_t element = 2;        // bytes of an activation
  int64_t update_bytes = 30;  // moved for each parameter by the optimizer
};

// The vocabulary as it is dealt out: unchanged on one GPU, a multiple of 128 on each of several.
int64_t padded_vocab(int64_t vocab, int64_t tensor);

Result<ModelCosts> transformer_costs(const Transformer& model, const GpuCluster& cluster, const Efficiency& efficiency,
                                     const Arithmetic& arithmetic, int64_t micro_batch, int64_t tensor);

}  // namespace forerun::scale
