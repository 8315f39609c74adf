#include "ingest/onnx/dimensions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "ingest/onnx/constant.h"
#include "ingest/onnx/dataflow.h"

namespace forerun::ingest {
namespace {

using Dimension = onnx::TensorShapeProto::Dimension;

bool is_dynamic(const Dimension& dim) { return !dim.has_dim_value() || dim.dim_value() == 0 || dim.dim_value() == -1; }

// Paddle calls every dimension "?" that it does not know: that is no name.
std::string name_of(const Dimension& dim) { return dim.dim_param() == "?" ? "" : dim.dim_param(); }

const onnx::TensorShapeProto& shape_of(const onnx::ValueInfoProto& input) { return input.type().tensor_type().shape(); }

std::string place_of(const onnx::ValueInfoProto& input) { return fmt::format("input '{}'", printable(input.name())); }

bool is_batch_name(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name == "n" || name == "b" || name == "bs" || name.find("batch") != std::string::npos;
}

}  // namespace

Result<Dimensions> Dimensions::bind(const std::vector<const onnx::ValueInfoProto*>& inputs,
                                    const OnnxOptions& options) {
  Dimensions out;
  if (options.batch < 0 || options.batch > kMaxElements) {
    return Error{fmt::format("batch {} is not possible", options.batch), "", "give a batch of 1 or more"};
  }
  for (const auto& [name, extent] : options.dims) {
    if (extent < 0 || extent > kMaxElements) {
      return Error{fmt::format("dimension '{}' cannot be {}", printable(name), extent), "",
                   "give an extent of 1 or more"};
    }
    out.bound_[name] = extent;
  }
  if (!inputs.empty()) {
    if (Status noted = out.note_batch(*inputs.front(), options); !noted) return noted.error();
  }
  for (const onnx::ValueInfoProto* input : inputs) {
    Shape shape;
    const int rank = shape_of(*input).dim_size();
    if (rank > static_cast<int>(kMaxRank)) {
      return Error{fmt::format("has rank {}, at most {} can be handled", rank, kMaxRank), place_of(*input), ""};
    }
    for (int axis = 0; axis < rank; ++axis) {
      Result<int64_t> extent = out.extent_of(*input, axis);
      if (!extent) return extent.error();
      shape.push_back(*extent);
    }
    if (!checked_elements(shape)) {
      return Error{fmt::format("the shape {} is not possible", text_of(shape)), place_of(*input),
                   "export the model again with sensible extents, or bind smaller ones"};
    }
    out.input_shapes_.push_back(std::move(shape));
  }
  if (Status checked = out.check_options(options); !checked) return checked.error();
  return out;
}

Status Dimensions::note_batch(const onnx::ValueInfoProto& first, const OnnxOptions& options) {
  if (shape_of(first).dim_size() == 0) return {};
  for (int axis = 0; axis < std::min(shape_of(first).dim_size(), static_cast<int>(kMaxRank)); ++axis) {
    const Dimension& named = shape_of(first).dim(axis);
    if (!is_dynamic(named) || !is_batch_name(named.dim_param())) continue;
    batch_axis_ = static_cast<size_t>(axis);
    break;
  }
  const Dimension& dim = shape_of(first).dim(static_cast<int>(batch_axis_));
  if (is_dynamic(dim)) {
    if (!name_of(dim).empty()) {
      batch_name_ = name_of(dim);
      if (const auto named = bound_.find(*batch_name_); named != bound_.end()) batch_ = named->second;
    }
    if (options.batch > 0) batch_ = options.batch;
    return {};
  }
  if (options.batch > 0 && dim.dim_value() != options.batch) {
    return Error{fmt::format("the file fixes the batch at {}, so it cannot be {}", dim.dim_value(), options.batch),
                 place_of(first), "export the model with a dynamic batch dimension, or leave the batch out"};
  }
  return {};
}

Result<int64_t> Dimensions::extent_of(const onnx::ValueInfoProto& input, int axis) {
  const Dimension& dim = shape_of(input).dim(axis);
  if (!is_dynamic(dim)) {
    if (dim.dim_value() > 0 && dim.dim_value() <= kMaxElements) return dim.dim_value();
    return Error{fmt::format("extent {} of dimension {} is not possible", dim.dim_value(), axis), place_of(input),
                 "export the model again with sensible extents"};
  }
  const bool named = !name_of(dim).empty();
  const std::string name = named ? name_of(dim) : fmt::format("{}:{}", input.name(), axis);
  seen_.insert(name);
  const auto bound = bound_.find(name);
  if (batch_name_ && name_of(dim) == *batch_name_) return batch_;
  if (bound != bound_.end()) return bound->second;
  if (!named && axis == 0) return batch_;
  return unbound(input, axis, name);
}

Error Dimensions::unbound(const onnx::ValueInfoProto& input, int axis, const std::string& name) const {
  return {fmt::format("dimension {} ('{}') is dynamic and has no value", axis, printable(name)), place_of(input),
          fmt::format("give one for '{}': --set {}=NUMBER", printable(name), printable(name))};
}

Status Dimensions::check_options(const OnnxOptions& options) const {
  for (const auto& [name, extent] : options.dims) {
    if (seen_.contains(name)) continue;
    std::vector<std::string> known;
    for (const std::string& other : seen_) known.push_back("'" + printable(other) + "'");
    return Error{fmt::format("no input has a dynamic dimension '{}'", printable(name)), "",
                 known.empty() ? std::string("this file has no dynamic dimension")
                               : fmt::format("its dynamic dimensions are {}", fmt::join(known, ", "))};
  }
  return {};
}

std::optional<Shape> Dimensions::stated_shape(const onnx::TypeProto& type) const {
  if (!type.has_tensor_type() || !type.tensor_type().has_shape()) return std::nullopt;
  if (type.tensor_type().shape().dim_size() > static_cast<int>(kMaxRank)) return std::nullopt;
  Shape shape;
  for (const Dimension& dim : type.tensor_type().shape().dim()) {
    if (!is_dynamic(dim)) {
      shape.push_back(dim.dim_value());
      continue;
    }
    const auto bound = bound_.find(name_of(dim));
    if (batch_name_ && name_of(dim) == *batch_name_) {
      shape.push_back(batch_);
    } else if (bound != bound_.end()) {
      shape.push_back(bound->second);
    } else {
      return std::nullopt;
    }
  }
  if (!checked_elements(shape)) return std::nullopt;
  return shape;
}

}  // namespace forerun::ingest
