// Whole models that the authors of NeuSight ran, with the times of their ops: label/GPU/MODEL-WHAT-LENGTH-BATCH.json and .csv.
//
//   {"num_layer": 24, "e2e_latency": 716.2, "fw_latency": 324.5, "bwall_latency": 391.7}           milliseconds
//   op,target,...,meta,input_shapes,input_contiguous,...,fw_latency,bw_latency,...,output_shape,...
//   call_module,transformer.h.0.ln_1,...,"{'nn_module_stack': ...}","[[1, 1024, 1280]]",[True],...,0.0471,0.0680,...,"(1, 1024, 1280)"
// The table is of a model with one layer, as torch.fx traces it, with attention spelled out in products and a softmax; ops of
// that layer stand for num_layer of them. Runs without a table (switch transformers, fused ones) have no ops.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "graph/attribute.h"

namespace forerun {

struct TracedOp {
  std::string call;    // "call_module", "call_function", "call_method"
  std::string target;  // "transformer.h.0.ln_1", "addmm", "contiguous"
  std::vector<Shape> inputs;
  Shape output;
  bool contiguous_input = true;  // the first
  bool in_layer = false;
  double forward_us = 0;
  double backward_us = 0;  // 0 of runs without a backward pass
};

struct TracedRun {
  std::string gpu;    // the folder's name: "Tesla_V100-PCIE-32GB"
  std::string model;  // "bert_large"
  bool training = false;
  int64_t length = 0;
  int64_t batch = 0;
  int64_t layers = 1;
  double measured_ms = 0;     // forward, and backward where it is trained
  std::vector<TracedOp> ops;  // empty: no table

  [[nodiscard]] std::string what() const { return training ? "forward, backward" : "forward"; }
  [[nodiscard]] bool same_question(const TracedRun& other) const {
    return model == other.model && training == other.training && length == other.length && batch == other.batch;
  }
};

// All runs below `folder`/label, in order of GPU and name. What cannot be read is an Error.
Result<std::vector<TracedRun>> read_traced_runs(const std::string& folder);

// The ops of one table.
Result<std::vector<TracedOp>> traced_ops_from_text(std::string_view text, const std::string& name);

}  // namespace forerun
