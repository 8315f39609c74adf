// Translation: the state of turning one ONNX graph into a forward graph, and Node, what a rule sees of it.
//
// Values are translated node by node. A value is a tensor of the forward graph, or a Constant that becomes a buffer
// only when an op really reads it, or both. Tensors that the file gives (initializers and Constant nodes alike) are
// given their part first, from how nodes use them: parameters, buffers (statistics of batch norms), weights of
// recurrent layers (split as PyTorch keeps them), weights of matrix products (transposed, as nn.Linear keeps them), or
// mere settings (axes, scales) and numbers (one element that only arithmetic reads).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "graph/forward_builder.h"
#include "ingest/onnx/constant.h"
#include "ingest/onnx/dataflow.h"
#include "ingest/onnx/dimensions.h"
#include "ingest/onnx/onnx_proto.h"
#include "ingest/onnx/value_use.h"

namespace forerun::ingest {

class Translation;

// One node while it is translated. Inputs and outputs count from 0; asking for an absent one fails the node.
class Node {
 public:
  Node(Translation& translation, uint32_t index);

  ForwardBuilder& b;
  const int64_t opset;

  [[nodiscard]] std::string_view type() const { return proto_.op_type(); }
  [[nodiscard]] size_t input_count() const { return inputs_.size(); }
  [[nodiscard]] size_t output_count() const { return outputs_.size(); }
  [[nodiscard]] bool has(size_t input) const { return input < inputs_.size() && inputs_[input] != kAbsent; }
  TensorId in(size_t input);
  std::optional<TensorId> optional_in(size_t input);
  std::vector<TensorId> all_inputs();
  // Looking at an input without making a constant a tensor of the forward graph.
  [[nodiscard]] Shape shape(size_t input) const;
  [[nodiscard]] int64_t rank(size_t input) const { return static_cast<int64_t>(shape(input).size()); }
  [[nodiscard]] DType dtype(size_t input) const;
  [[nodiscard]] bool is_parameter(size_t input) const;
  [[nodiscard]] const Constant* constant(size_t input) const;       // null: contents not known
  [[nodiscard]] std::optional<Shape> integers(size_t input) const;  // contents as integers
  [[nodiscard]] std::optional<double> scalar(size_t input) const;   // contents of one element
  // Weight of a matrix product that is kept as [out, in].
  [[nodiscard]] bool is_transposed(size_t input) const;
  // The parameters that an RNN's weight or bias was split into; null: it is an ordinary tensor.
  [[nodiscard]] const std::vector<TensorId>* rnn_parts(size_t input) const;
  // The bias that the only user of output 0 adds, with that Add then done.
  std::optional<TensorId> take_following_bias(int64_t features);
  // Whether the only user of output 0 multiplies it with input 0 (x * sigmoid(x)), with that Mul then done.
  bool take_following_product();
  // Where this transposes a weight matrix that only matrix products read: keeps it as it is, for is_transposed.
  bool keep_transposed();

  [[nodiscard]] bool has_attribute(std::string_view name) const { return attribute(name) != nullptr; }
  [[nodiscard]] const onnx::AttributeProto* attribute(std::string_view name) const;
  [[nodiscard]] int64_t integer(std::string_view name, int64_t otherwise) const;
  [[nodiscard]] double real(std::string_view name, double otherwise) const;
  [[nodiscard]] std::string text(std::string_view name, std::string_view otherwise) const;
  [[nodiscard]] Shape integers(std::string_view name) const;
  // A list that is an attribute in early opsets and an input in later ones; nothing where it is absent or not known.
  [[nodiscard]] std::optional<Shape> list(std::string_view name, size_t input) const;
  // The type that a Cast names: a number, or before opset 6 a word ("FLOAT").
  [[nodiscard]] std::optional<DType> cast_target() const;
  // A dimension of a tensor of this rank, counted from 0; fails the node where there is none.
  int64_t axis(int64_t dim, int64_t of_rank);

  [[nodiscard]] bool is_used(size_t output) const;
  void out(size_t output, TensorId tensor);
  void out(size_t output, Constant constant);
  void forward(size_t input, size_t output = 0);  // the output is the input
  // Whether the output is a weight where the node gives a tensor of the file, which is then made a parameter.
  bool out_weight(size_t output, const Constant& given);
  // Carries the node as opaque, with the results its rule worked out.
  void carry(const std::vector<std::pair<Shape, DType>>& results);
  void fail(std::string what, std::string remedy = "") { b.fail(std::move(what), std::move(remedy)); }

 private:
  friend class Translation;
  // The node that alone reads output 0, where it is of this type and joins two inputs.
  [[nodiscard]] std::optional<uint32_t> only_user(std::string_view type) const;
  Translation& translation_;
  const onnx::NodeProto& proto_;
  uint32_t index_;
  std::span<const ValueIndex> inputs_;
  std::span<const ValueIndex> outputs_;
};

class Translation {
 public:
  Translation(const onnx::GraphProto& graph, const Dataflow& flow, int64_t opset);

  // Errors have no file in `where`, only the node, input or initializer.
  Status add_roots(const std::vector<const onnx::ValueInfoProto*>& inputs, const Dimensions& dimensions);
  Status translate_nodes(const Dimensions& dimensions);
  Status add_results();

  [[nodiscard]] const std::vector<TensorId>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<TensorId>& results() const { return results_; }
  [[nodiscard]] const std::map<std::string, int64_t>& opaque_ops() const { return opaque_ops_; }
  ForwardBuilder& builder() { return builder_; }

 private:
  friend class Node;
  enum class Part : uint8_t { value, parameter, transposed, rnn };
  struct Value {
    TensorId tensor;
    uint32_t constant = kNobody;
    Part part = Part::value;
  };

  Status add_initializer(ValueIndex value, Constant constant);
  [[nodiscard]] bool is_constant_node(uint32_t node) const;
  // Of a tensor that the file gives.
  [[nodiscard]] bool is_weight(ValueIndex value, const Constant& given) const;
  void add_weight(ValueIndex value, const Constant& given);
  void split_rnn_weight(ValueIndex value, const Constant& weight, bool bias);
  Status translate(uint32_t index, const Dimensions& dimensions);
  void carry_unknown(Node& node, const Dimensions& dimensions);
  Status check_outputs(const Node& node) const;
  [[nodiscard]] std::string module_of(const Node& node) const;
  TensorId tensor_of(ValueIndex value);
  void set_constant(ValueIndex value, Constant constant);
  [[nodiscard]] Error located(Error error, std::string where) const;
  [[nodiscard]] Error blamed(Error error) const;

  const onnx::GraphProto& graph_;
  const Dataflow& flow_;
  const int64_t opset_;
  const std::vector<uint8_t> uses_;  // by value: ValueUse
  const WeightPlaces weight_places_;
  ForwardBuilder builder_;
  std::vector<Value> values_;
  std::deque<Constant> constants_;
  int64_t known_elements_ = 0;  // of all constants together
  std::unordered_map<ValueIndex, std::vector<TensorId>> rnn_parts_;
  // Nodes whose work an earlier one has taken over, and the input that already is their result.
  std::unordered_map<uint32_t, size_t> done_;
  std::unordered_map<std::string_view, const onnx::TypeProto*> stated_types_;
  std::map<std::string, int64_t> opaque_ops_;
  std::string guessed_;  // the first node whose result's shape no rule and no statement tells
  std::vector<TensorId> inputs_;
  std::vector<TensorId> results_;
};

}  // namespace forerun::ingest
