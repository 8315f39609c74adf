// Graph: one training iteration (or only its forward part) as data.
//
// An op is one dispatched aten operation in program order, with phase, module, input and output tensors and attributes.
// A tensor is a typed, shaped view of a storage; views and in-place ops share storages, so data dependencies, lifetimes
// and memory all follow from storages. Roots are the storages that exist before the iteration: parameters, buffers,
// optimizer state, inputs.
//
// A *forward graph* uses the same type before derivation: only forward ops, at the granularity of a model's source code
// (aten.linear.default, aten.lstm.input), every output with a storage of its own except in-place results.
//
// The graph is columns and interned tables: about 100 bytes an op. It is immutable; GraphBuilder (graph_builder.h) makes it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/interner.h"
#include "base/quantity.h"
#include "base/result.h"
#include "graph/attribute.h"
#include "graph/dtype.h"

namespace forerun {

using OpId = Id<struct OpTag>;
using TensorId = Id<struct TensorTag>;
using StorageId = Id<struct StorageTag>;
using ShapeId = Id<struct ShapeTag>;
using AttributesId = Id<struct AttributesTag>;

enum class Phase : uint8_t { forward, backward, update };
std::string_view name_of(Phase phase);

enum class Root : uint8_t { none, parameter, buffer, state, input };

struct Op {
  NameId name;  // "aten.addmm.default"
  Phase phase = Phase::forward;
  uint16_t piece = 0;          // of a model that was traced by Dynamo (DynamoTrace), from 1; 0: in none
  NameId module;               // "layer1.0.conv2"; "" outside any module
  uint32_t first_operand = 0;  // inputs, then outputs, in Graph::operands
  uint32_t input_count = 0;
  uint32_t output_count = 0;
  AttributesId attributes;
  uint32_t sequence = 0;  // autograd sequence number: a backward op carries that of its forward op
  NameId autograd_node;   // "AddmmBackward0" in the backward phase, "" elsewhere
};

struct Tensor {
  StorageId storage;
  DType dtype = DType::float32;
  ShapeId shape;
  ShapeId strides;  // invalid where the source does not tell (run/1)
};

struct Storage {
  Bytes bytes;
  bool on_gpu = true;
  Root root = Root::none;
  NameId root_name;
  OpId freed_before;  // invalid: lives to the end of the iteration and beyond (roots, gradients)
};

class Graph {
 public:
  [[nodiscard]] size_t op_count() const { return ops_.size(); }
  [[nodiscard]] const std::vector<Op>& ops() const { return ops_; }
  [[nodiscard]] const Op& op(OpId id) const { return ops_[id.value]; }
  [[nodiscard]] std::span<const TensorId> inputs(const Op& op) const {
    return {operands_.data() + op.first_operand, op.input_count};
  }
  [[nodiscard]] std::span<const TensorId> outputs(const Op& op) const {
    return {operands_.data() + op.first_operand + op.input_count, op.output_count};
  }
  [[nodiscard]] const Attributes& attributes(const Op& op) const { return attribute_sets_[op.attributes.value]; }
  [[nodiscard]] const std::string& name(const Op& op) const { return names_[op.name]; }
  [[nodiscard]] const std::string& module(const Op& op) const { return names_[op.module]; }

  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }
  [[nodiscard]] const Tensor& tensor(TensorId id) const { return tensors_[id.value]; }
  [[nodiscard]] std::span<const int64_t> shape(TensorId id) const { return extents(tensors_[id.value].shape); }
  [[nodiscard]] std::span<const int64_t> strides(TensorId id) const {
    const ShapeId strides = tensors_[id.value].strides;
    return strides.valid() ? extents(strides) : std::span<const int64_t>{};
  }
  [[nodiscard]] int64_t element_count(TensorId id) const;
  [[nodiscard]] Bytes bytes_of(TensorId id) const;

  [[nodiscard]] const std::vector<Storage>& storages() const { return storages_; }
  [[nodiscard]] const Storage& storage(StorageId id) const { return storages_[id.value]; }

  // Results of the forward graph (logits); empty where the source does not name them.
  [[nodiscard]] const std::vector<TensorId>& results() const { return results_; }

  // Number of elements of all parameters, counted by view: an RNN's flat buffer holds several parameters.
  [[nodiscard]] int64_t parameter_count() const { return parameter_count_; }
  [[nodiscard]] int64_t parameter_tensors() const {
    return parameters_.empty() ? parameter_tensor_count_ : static_cast<int64_t>(parameters_.size());
  }
  // The parameters as the optimizer sees them, in registration order (known for zoo and ONNX models only).
  [[nodiscard]] const std::vector<TensorId>& parameters() const { return parameters_; }

  [[nodiscard]] const StringTable& names() const { return names_; }

 private:
  friend class GraphBuilder;
  [[nodiscard]] std::span<const int64_t> extents(ShapeId id) const {
    const auto [first, count] = shapes_[id.value];
    return {extents_.data() + first, count};
  }

  std::vector<Op> ops_;
  std::vector<TensorId> operands_;
  std::vector<Tensor> tensors_;
  std::vector<Storage> storages_;
  std::vector<std::pair<uint32_t, uint32_t>> shapes_;  // first extent, rank
  std::vector<int64_t> extents_;
  std::vector<Attributes> attribute_sets_;
  std::vector<TensorId> results_;
  std::vector<TensorId> parameters_;
  int64_t parameter_count_ = 0;
  int64_t parameter_tensor_count_ = 0;  // where parameters_ is not known
  StringTable names_;
};

// Checks what every consumer relies on: operands and storages in range, extents not negative, element counts within
// 2^62, tensors inside their storages, no use of a storage before it exists or after it is freed, the update behind forward and backward
// (which take turns where gradients are accumulated over micro-batches).
Status verify(const Graph& graph);

}  // namespace forerun
