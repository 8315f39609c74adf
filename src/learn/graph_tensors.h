// GraphTensors: a training iteration as torch tensors, the common input of the neural predictors.
//
// One row per op in program order. The op's name is an index into an OpVocabulary; its phase an index; its work (FLOPs,
// bytes, element counts) is given as ln(1 + x), since it spans ten orders of magnitude. An edge runs from the op that last
// wrote a storage to each op that reads it, so views and in-place ops are followed. Reading roots (parameters, inputs)
// makes no edge. Left out: attributes, modules and shapes beyond their products.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/interner.h"
#include "graph/graph.h"
#include "learn/torch.h"

namespace forerun::learn {

// The op names a predictor was trained with, in a fixed order. Index 0 stands for every other name.
class OpVocabulary {
 public:
  // All names of a graph's ops are added in order of first sight.
  void add(const Graph& graph);
  [[nodiscard]] int64_t index_of(std::string_view op_name) const;
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(names_.size()) + 1; }

 private:
  StringTable names_;
};

enum class Feature : uint8_t { flops, bytes_read, bytes_written, input_elements, output_elements };
inline constexpr int64_t kFeatureCount = 5;

struct GraphTensors {
  torch::Tensor names;     // int64 [ops]
  torch::Tensor phases;    // int64 [ops]: 0 forward, 1 backward, 2 update
  torch::Tensor features;  // float32 [ops, kFeatureCount], columns in the order of Feature
  torch::Tensor edges;     // int64 [2, edges]: writer, reader; each pair once, ordered by reader, then writer
};

GraphTensors graph_tensors(const Graph& graph, const OpVocabulary& vocabulary);

}  // namespace forerun::learn
