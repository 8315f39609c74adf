// Ops of whole models as the authors of NeuSight timed them one by one: a CSV file for each run, a row for each node of the
// traced graph of a model with one layer.
//
//   op,target,...,input_shapes,...,fw_latency,...,output_shape,...
//   call_module,bert.pooler.dense,...,"[[8, 1024]]",...,0.0489,...,"(8, 1024)",...
// Latency is milliseconds of the best calls among many, launching included. Read are what takes most of a transformer's time
// and is one op: linear layers, batched products of three dimensions, softmax and layer norm. Products of four dimensions,
// which copy their operands first, and everything else are passed over.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/papers/neusight/op_latency.h"

namespace forerun {

// `gpu` of the result is empty: the file does not name it, its folder does.
Result<std::vector<OpLatency>> read_model_ops(const std::string& path);
Result<std::vector<OpLatency>> model_ops_from_text(std::string_view text, const std::string& name);

}  // namespace forerun
