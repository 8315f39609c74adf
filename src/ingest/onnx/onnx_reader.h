// ONNX file -> forward graph, with the ops a PyTorch source of the same model would call.
//
// Reads ModelProto (every opset; 6 to 21 are tested) and infers every shape itself through ForwardBuilder, so the file
// needs no value_info. Arithmetic on shapes is folded and leaves no op. Ops without a rule, and those with subgraphs
// (If, Loop, Scan), are carried as "onnx.<OpType>" and counted. Contents of weights are never used: external data files
// are not opened. Left out: functions of the model (their calls are opaque), sequences and maps, training_info.
//
// Parameters are the floating tensors with dimensions that the file gives as initializers (also where these are graph
// inputs) or in Constant nodes, except
// - settings: what only sizes, axes, scales and limits are computed from;
// - numbers: one element that only elementwise arithmetic reads (a learned scalar is not told from these);
// - running statistics of batch norms, which are buffers;
// - Constant nodes that no layer reads as its weight, in files that keep most weights as initializers: masks, grids.
// ConstantOfShape counts as Constant does where it stands for the weights of layers (files stripped of their weights).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"
#include "graph/training_run.h"

namespace forerun {

struct OnnxOptions {
  int64_t batch = 0;  // binds the dynamic batch dimension; 0: as in the file, 1 if dynamic
  // Other dynamic dimensions: by their name in the file, or "input:axis" where it has none.
  std::vector<std::pair<std::string, int64_t>> dims;
};

struct OnnxModel {
  Graph forward;
  InputSpec input;
  std::map<std::string, int64_t> opaque_ops;  // "Einsum", "com.microsoft.Attention" -> number of nodes
  std::string producer;                       // "pytorch 2.1.0"; may be empty
  int64_t opset = 0;
};

// Fails where the file has no weights that could be trained, and says where they are instead.
Status check_trainable(const OnnxModel& model);

Result<OnnxModel> read_onnx(const std::string& path, const OnnxOptions& options = {});

// The same for a file in memory; `name` stands for the file in errors.
Result<OnnxModel> read_onnx_bytes(std::string_view bytes, const std::string& name, const OnnxOptions& options = {});

}  // namespace forerun
