// OpTemporaries: what ops allocate for themselves while they run and free before they return.
//
// Rules found in allocator traces and single-op measurements of PyTorch 2.11 with cuDNN 9.19 on an H200: buffers of
// reductions, layer norm, softmax and embedding gradients, batch norm, attention backward, recurrent layers, and convolutions by a
// measured table. Left out: what is always small (counters) and ops that training seldom has.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "derive/layout.h"
#include "graph/graph.h"
#include "memory/reduction_buffer.h"
#include "memory/workspace_table.h"

namespace forerun {

struct Temporary {
  int64_t bytes = 0;
  uint32_t outputs_before = UINT32_MAX;  // how many of the op's outputs are allocated before it; all, if more
  bool brief = false;                    // freed before the op goes on; otherwise at its end
  uint32_t frees = 0;                    // how many of those held so far are freed before it

  bool operator==(const Temporary&) const = default;
};

// In which order an op allocates its outputs.
enum class OutputOrder : uint8_t { as_given, reversed, first_last, second_first };
// The output allocated at a place.
size_t output_at(OutputOrder order, size_t place, size_t count);

struct TemporaryOptions {
  const WorkspaceTable* workspaces = nullptr;
  bool channels_last = false;  // of images at the start, where tensors do not tell their strides
  ReductionDevice device;
};

class OpTemporaries {
 public:
  OpTemporaries(const Graph& graph, const TemporaryOptions& options);

  // Appends what the next op allocates, in order, and tells the order of its outputs. Takes the ops one after the other,
  // to follow how tensors lie in memory.
  OutputOrder append(const Op& op, std::vector<Temporary>& found);

 private:
  enum class Rule : uint8_t {
    none,
    dropout,
    reduction,
    layer_norm,
    layer_norm_backward,
    softmax_backward,
    embedding_backward,
    convolution,
    convolution_backward,
    batch_norm,
    batch_norm_backward,
    cudnn_batch_norm,
    cudnn_batch_norm_backward,
    rnn,
    rnn_backward,
    efficient_attention_backward,
    flash_attention_backward,
    cudnn_attention_backward,
    roll,
  };
  static Rule rule_of(std::string_view name);
  void append(const Op& op, Rule rule, std::vector<Temporary>& found) const;

  [[nodiscard]] OutputOrder order_of(const Op& op, Rule rule) const;
  [[nodiscard]] bool contiguous(TensorId tensor) const;
  [[nodiscard]] bool channels_together(TensorId tensor) const;
  void append_reduction(const Op& op, std::vector<Temporary>& found) const;
  void append_layer_norm_backward(const Op& op, std::vector<Temporary>& found) const;
  void append_embedding_backward(const Op& op, std::vector<Temporary>& found) const;
  void append_convolution(const Op& op, std::vector<Temporary>& found) const;
  void append_convolution_backward(const Op& op, std::vector<Temporary>& found) const;
  void append_batch_norm(const Op& op, Rule rule, std::vector<Temporary>& found) const;
  void append_attention_backward(const Op& op, Rule rule, std::vector<Temporary>& found) const;
  void append_rnn(const Op& op, bool backward, std::vector<Temporary>& found) const;
  [[nodiscard]] ConvolutionShape convolution_shape(const Op& op, TensorId input, TensorId weight,
                                                   TensorId output) const;
  [[nodiscard]] int64_t workspace(ConvolutionPass pass, const ConvolutionShape& shape) const;
  void add_reduction(const Reduction& reduction, uint32_t outputs_before, std::vector<Temporary>& found) const;

  const Graph& graph_;
  TemporaryOptions options_;
  std::vector<Rule> rules_;  // by name
  LayoutTracker layouts_;
  mutable std::map<std::pair<ConvolutionPass, ConvolutionShape>, int64_t> workspaces_;  // those asked for so far
};

}  // namespace forerun
