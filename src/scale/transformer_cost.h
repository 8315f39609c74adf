// What the blocks of a transformer cost on a GPU, its layers shared by the GPUs of a tensor group as Megatron does.
//
// Source: Shoeybi et al. (2019) for how layers are cut: the first product of attention and of the feed-forward layer by
// columns, the second by rows, heads dealt out, two all-reduces forward and two backward; the vocabulary dealt out. GPU
// time is products at a share of the peak (at least what their bytes take), attention's products and scores, bytes
// of everything elementwise, and those of adding a micro-batch's gradients to the sum, which is a kernel of its own; the host's time to issue it is combined by a p-norm. Constants: efficiency.h. What is kept
// for the backward pass: Korthikanti et al. (2022), 34 + 5 as/h bytes per element, and so is what sequence parallelism
// (norms, dropout and residuals divided along the sequence, reduce-scatter and all-gather in place of all-reduce) and
// selective recomputation (attention's scores) change. Context groups pass keys and values round a ring beside attention
// (Liu et al., 2023, as Megatron has it), with causal parts dealt out evenly; what attention does not hide is exposed. In fp8 the
// products of layers reach the share of the fp8 peak that others reach of theirs; their inputs and gradients are cast and transposed
// in every micro-batch, weights once a step, and two copies of them are kept (derive/fp8_linear.h has the same op by op). Left
// out: experts; that the gathered input of a layer, which sequence parallelism gathers once more in the backward pass,
// is not always hidden.
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
  int64_t gradient = 2;       // of a parameter's gradient, summed over the micro-batches
  int64_t update_bytes = 30;  // moved for each parameter by the optimizer
  bool fp8 = false;           // linear layers of the layers multiply in fp8, as Transformer Engine has it
};

// The vocabulary as it is dealt out: unchanged on one GPU, a multiple of 128 on each of several.
int64_t padded_vocab(int64_t vocab, int64_t tensor);

Result<ModelCosts> transformer_costs(const Transformer& model, const GpuCluster& cluster, const Efficiency& efficiency,
                                     const Arithmetic& arithmetic, const Cut& cut);

}  // namespace forerun::scale
