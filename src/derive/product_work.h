// The ops that are matrix products: plain, convolutions (as implicit GEMMs), attention, recurrent layers.
//
// Each function sets FLOPs, GEMM shapes and tensor-core eligibility, and corrects bytes where operands are not all
// read. Operands that do not have the shape an op needs leave the FLOPs at 0: graph verification reports such ops.
#pragma once

#include "derive/work.h"

namespace forerun {

void add_gemm_work(const Graph& graph, const Op& op, OpWork& work);
void add_convolution_work(const Graph& graph, const Op& op, OpWork& work);
void add_attention_work(const Graph& graph, const Op& op, OpWork& work);
void add_rnn_work(const Graph& graph, const Op& op, OpWork& work);

}  // namespace forerun
