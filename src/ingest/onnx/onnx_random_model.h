// RandomModel: ONNX graphs of given ops with random operands, attributes and lists, sensible and absurd; for tests.
#pragma once

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ingest/onnx/onnx_test_model.h"
#include "ingest/onnx/rules.h"

namespace forerun::ingest {

// Every op that has a rule, and some that are folded or unknown.
inline std::vector<std::string> all_op_types() {
  std::vector<std::string> types = {"Constant", "Shape", "Size", "Unknown"};
  for (const auto& list : {layer_rules(), recurrent_rules(), elementwise_rules(), shape_rules(), index_rules()}) {
    for (const Rule& rule : list) types.emplace_back(rule.type);
  }
  return types;
}

class RandomModel {
 public:
  explicit RandomModel(uint32_t seed) : random_(seed), model_(static_cast<int64_t>(7 + seed % 16)) {}

  OnnxTestModel make(const std::vector<std::string>& types) {
    model_.input("x", {below(3) == 0 ? TestDim("N") : TestDim(extent()), extent(), 6, 6});
    model_.input("seq", {5, 2, 3});
    model_.input("ids", {2, 4}, onnx::TensorProto::INT64);
    values_ = {"x", "seq", "ids"};
    for (int i = 0; i < 6; ++i) add_initializer("w" + std::to_string(i));
    const size_t nodes = 1 + below(12);
    for (size_t i = 0; i < nodes; ++i) add_node(types[below(types.size())], i);
    model_.output(values_.back());
    return model_;
  }

 private:
  size_t below(size_t limit) { return random_() % limit; }
  int64_t extent() { return static_cast<int64_t>(1 + below(6)); }

  // Mostly small, at times a limit of the type.
  int64_t number() {
    static constexpr int64_t kOdd[] = {0,
                                       -1,
                                       -2,
                                       int64_t{1} << 31,
                                       int64_t{1} << 46,
                                       int64_t{1} << 62,
                                       std::numeric_limits<int64_t>::max(),
                                       std::numeric_limits<int64_t>::min()};
    return below(6) == 0 ? kOdd[below(std::size(kOdd))] : static_cast<int64_t>(below(5));
  }
  Shape list() {
    Shape out(below(6));
    for (int64_t& entry : out) entry = number();
    return out;
  }

  void add_initializer(const std::string& name) {
    if (below(2) == 0) {
      model_.ints(name, list());
    } else if (below(4) == 0) {
      model_.scalar(name, static_cast<float>(number()));
    } else {
      Shape shape(below(5));
      for (int64_t& entry : shape) entry = below(12) == 0 ? 0 : extent();
      model_.weight(name, shape);
    }
    values_.push_back(name);
  }

  void add_node(const std::string& type, size_t index) {
    std::vector<std::string> inputs(below(6));
    for (std::string& input : inputs) input = below(12) == 0 ? "" : values_[below(values_.size())];
    if (!inputs.empty() && below(2) == 0) inputs[0] = values_.back();
    std::vector<std::string> outputs;
    for (size_t i = 0; i <= below(3); ++i) outputs.push_back("v" + std::to_string(index) + "_" + std::to_string(i));
    static const std::vector<std::string> kLists = {
        "axes",         "kernel_shape", "strides", "pads",   "dilations", "perm",       "split",
        "output_shape", "starts",       "ends",    "scales", "shape",     "value_ints", "output_padding"};
    static const std::vector<std::string> kNumbers = {
        "axis",      "keepdims",   "group",  "to",        "transA",    "transB", "hidden_size", "start", "end",
        "blocksize", "num_groups", "layout", "value_int", "allowzero", "k"};
    std::vector<std::pair<std::string, TestAttribute>> attributes;
    for (size_t i = below(4); i > 0; --i) attributes.emplace_back(kLists[below(kLists.size())], list());
    for (size_t i = below(4); i > 0; --i) attributes.emplace_back(kNumbers[below(kNumbers.size())], number());
    if (below(6) == 0) attributes.emplace_back("auto_pad", std::string("SAME_UPPER"));
    if (below(6) == 0) attributes.emplace_back("equation", std::string("ab,bc->ac"));
    if (below(6) == 0) attributes.emplace_back("direction", std::string("bidirectional"));
    model_.node(type, inputs, outputs, attributes);
    values_.insert(values_.end(), outputs.begin(), outputs.end());
  }

  std::mt19937 random_;
  OnnxTestModel model_;
  std::vector<std::string> values_;
};

}  // namespace forerun::ingest
