// Op latencies as the authors of NeuSight published them: CSV files, one for each kind of op and GPU, fp32 forward.
//
//   OPName,Latency,Device,Torch Version,...,Kernel Name,...,B,M,N,K
//   bmm,0.035466667264699936,Tesla T4,p2.1.0,...,volta_sgemm_64x64_nn,...,13,27,15,29
// Latency is milliseconds of one call among many, the cost of launching it included: tens of microseconds, whatever the
// op. Columns are found by name. Kinds: bmm and linear (B products of M x N by N x K: the grids of their kernels fit no other reading), conv (B, Input_Channel, Output_Channel, Kernel_Szie,
// Input_Size, Stride, Padding), and over a matrix of B x H: ln, softmax, and element by element add, mul, div, pow (of two
// matrices), addu, mulu, divu, powu (of a matrix and a number), relu, gelu, tanh. Other kinds are an Error.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/capture/op_sample.h"

namespace forerun {

struct OpLatency {
  std::string gpu;
  std::string kind;     // "bmm"
  OpSample sample;      // the op as PyTorch dispatches it, with its time
  std::string kernel;   // the longest of its kernels: "volta_sgemm_64x64_nn"; empty where the table does not say
  int64_t blocks = 0;   // of that kernel; 0 where the table does not say
  int64_t threads = 0;  // of a block
};

// The op as PyTorch dispatches it; nothing where the kind is unknown or has no such extents. Extents as the columns above.
std::optional<OpSample> neusight_op(std::string_view kind, const std::vector<int64_t>& extents);

Result<std::vector<OpLatency>> read_op_latencies(const std::string& path);
Result<std::vector<OpLatency>> op_latencies_from_text(std::string_view text, const std::string& name);

}  // namespace forerun
