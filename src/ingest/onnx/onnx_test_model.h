// OnnxTestModel: writes small ONNX models in memory, for the tests of this folder.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ingest/onnx/onnx_proto.h"
#include "ingest/onnx/onnx_reader.h"

namespace forerun::ingest {

using TestDim = std::variant<int64_t, std::string>;
using TestAttribute = std::variant<int64_t, float, std::string, std::vector<int64_t>>;

class OnnxTestModel {
 public:
  explicit OnnxTestModel(int64_t opset = 17) {
    proto.set_ir_version(8);
    proto.set_producer_name("forerun-test");
    proto.add_opset_import()->set_version(opset);
    proto.mutable_graph()->set_name("test");
  }

  void input(const std::string& name, const std::vector<TestDim>& dims, int type = onnx::TensorProto::FLOAT) {
    describe(proto.mutable_graph()->add_input(), name, dims, type);
  }
  void output(const std::string& name) { proto.mutable_graph()->add_output()->set_name(name); }
  void value_info(const std::string& name, const std::vector<TestDim>& dims, int type = onnx::TensorProto::FLOAT) {
    describe(proto.mutable_graph()->add_value_info(), name, dims, type);
  }

  // A floating initializer whose contents lie elsewhere.
  onnx::TensorProto* weight(const std::string& name, const Shape& dims) {
    onnx::TensorProto* tensor = proto.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t dim : dims) tensor->add_dims(dim);
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    return tensor;
  }
  // The same in a Constant node, where Paddle and others keep weights.
  void constant_weight(const std::string& name, const Shape& dims) {
    onnx::AttributeProto* attribute = node("Constant", {}, {name})->add_attribute();
    attribute->set_name("value");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    attribute->mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t dim : dims) attribute->mutable_t()->add_dims(dim);
    attribute->mutable_t()->set_data_location(onnx::TensorProto::EXTERNAL);
  }
  // A Constant node with these contents, of one dimension.
  void constant_floats(const std::string& name, const std::vector<float>& values) {
    onnx::AttributeProto* attribute = node("Constant", {}, {name})->add_attribute();
    attribute->set_name("value_floats");
    attribute->set_type(onnx::AttributeProto::FLOATS);
    for (const float value : values) attribute->add_floats(value);
  }
  void ints(const std::string& name, const std::vector<int64_t>& values) {
    onnx::TensorProto* tensor = proto.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->add_dims(static_cast<int64_t>(values.size()));
    tensor->set_raw_data(values.data(), values.size() * sizeof(int64_t));
  }
  void scalar(const std::string& name, int64_t value) {
    onnx::TensorProto* tensor = proto.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->add_int64_data(value);
  }
  void scalar(const std::string& name, float value) {
    onnx::TensorProto* tensor = proto.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->add_float_data(value);
  }

  onnx::NodeProto* node(const std::string& type, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs,
                        const std::vector<std::pair<std::string, TestAttribute>>& attributes = {}) {
    onnx::NodeProto* added = proto.mutable_graph()->add_node();
    added->set_op_type(type);
    for (const std::string& name : inputs) added->add_input(name);
    for (const std::string& name : outputs) added->add_output(name);
    for (const auto& [name, value] : attributes) set(added->add_attribute(), name, value);
    return added;
  }

  [[nodiscard]] std::string bytes() const { return proto.SerializeAsString(); }
  [[nodiscard]] Result<OnnxModel> read(const OnnxOptions& options = {}) const {
    return read_onnx_bytes(bytes(), "test.onnx", options);
  }

  onnx::ModelProto proto;

 private:
  static void describe(onnx::ValueInfoProto* info, const std::string& name, const std::vector<TestDim>& dims,
                       int type) {
    info->set_name(name);
    onnx::TypeProto::Tensor* tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const TestDim& dim : dims) {
      auto* added = tensor->mutable_shape()->add_dim();
      if (const auto* extent = std::get_if<int64_t>(&dim)) {
        added->set_dim_value(*extent);
      } else {
        added->set_dim_param(std::get<std::string>(dim));
      }
    }
  }
  static void set(onnx::AttributeProto* attribute, const std::string& name, const TestAttribute& value) {
    attribute->set_name(name);
    if (const auto* number = std::get_if<int64_t>(&value)) {
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(*number);
    } else if (const auto* real = std::get_if<float>(&value)) {
      attribute->set_type(onnx::AttributeProto::FLOAT);
      attribute->set_f(*real);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      attribute->set_type(onnx::AttributeProto::STRING);
      attribute->set_s(*text);
    } else {
      attribute->set_type(onnx::AttributeProto::INTS);
      for (const int64_t entry : std::get<std::vector<int64_t>>(value)) attribute->add_ints(entry);
    }
  }
};

// One node of one floating input "x" to "y"; further inputs are lists of integers.
struct TestForm {
  int64_t opset;
  std::string type;
  Shape in;
  std::vector<Shape> lists;  // inputs after the first; an empty list leaves one out
  std::vector<std::pair<std::string, TestAttribute>> attributes;
  Shape out;
  std::vector<std::string> ops;

  [[nodiscard]] OnnxTestModel model() const {
    OnnxTestModel m(opset);
    m.input("x", {in.begin(), in.end()});
    std::vector<std::string> inputs = {"x"};
    for (const Shape& list : lists) {
      inputs.push_back(list.empty() ? "" : "list" + std::to_string(inputs.size()));
      if (!list.empty()) m.ints(inputs.back(), list);
    }
    m.node(type, inputs, {"y"}, attributes);
    m.output("y");
    return m;
  }
};

inline std::vector<std::string> op_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Op& op : graph.ops()) names.push_back(graph.name(op));
  return names;
}

inline Shape result_shape(const Graph& graph, size_t result = 0) {
  const auto shape = graph.shape(graph.results().at(result));
  return {shape.begin(), shape.end()};
}

}  // namespace forerun::ingest
