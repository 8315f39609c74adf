// Dimensions: gives every dynamic dimension of a file a number, from the options.
//
// The batch is the dimension of the first input that is named so ("batch", "batch_size", "N"), else its first one.
// Another stands for the batch where it has the same name, or has none and comes first; all others must be bound by
// name, or as "input:axis" where they have none. An extent of 0 or -1 counts as dynamic: some exporters write it so.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/attribute.h"
#include "ingest/onnx/onnx_proto.h"
#include "ingest/onnx/onnx_reader.h"

namespace forerun::ingest {

class Dimensions {
 public:
  // `inputs`: those the model is fed, without the ones that have an initializer.
  static Result<Dimensions> bind(const std::vector<const onnx::ValueInfoProto*>& inputs, const OnnxOptions& options);

  // By input, in the order given to bind.
  [[nodiscard]] const std::vector<Shape>& input_shapes() const { return input_shapes_; }
  // Where the first input has its batch.
  [[nodiscard]] size_t batch_axis() const { return batch_axis_; }
  // The shape that value_info states, where all of it is known.
  [[nodiscard]] std::optional<Shape> stated_shape(const onnx::TypeProto& type) const;

 private:
  Result<int64_t> extent_of(const onnx::ValueInfoProto& input, int axis);
  [[nodiscard]] Error unbound(const onnx::ValueInfoProto& input, int axis, const std::string& name) const;
  [[nodiscard]] Status check_options(const OnnxOptions& options) const;
  Status note_batch(const onnx::ValueInfoProto& first, const OnnxOptions& options);

  std::map<std::string, int64_t> bound_;   // by the options
  std::set<std::string> seen_;             // names of the file's dynamic dimensions
  std::optional<std::string> batch_name_;  // of the batch dimension, where it has a name
  int64_t batch_ = 1;
  size_t batch_axis_ = 0;
  std::vector<Shape> input_shapes_;
};

}  // namespace forerun::ingest
