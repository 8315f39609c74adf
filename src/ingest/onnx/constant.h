// Constant: a tensor of the file known without running the model: its type, its shape, and its contents where small.
//
// Shapes, axes, sizes, scales and scalars are contents that the importer needs; the contents of weights are not read.
// Integers and booleans are kept as int64, floating values as double.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/attribute.h"
#include "graph/dtype.h"
#include "ingest/onnx/onnx_proto.h"

namespace forerun::ingest {

constexpr int64_t kMaxElements = int64_t{1} << 46;  // as ForwardBuilder's
constexpr size_t kMaxRank = 64;
constexpr int64_t kMaxKnownElements = 256;  // contents of larger tensors are not kept

struct Constant {
  DType dtype = DType::float32;
  Shape shape;
  bool known = false;         // contents are present
  std::vector<int64_t> ints;  // where dtype is not floating
  std::vector<double> reals;  // where it is

  static Constant of_ints(std::vector<int64_t> values, Shape shape, DType dtype = DType::int64);
  static Constant list(std::vector<int64_t> values);  // rank 1, int64
  [[nodiscard]] size_t size() const { return is_floating(dtype) ? reals.size() : ints.size(); }
  // The element as a number; integers beyond 2^53 lose digits.
  [[nodiscard]] double number(size_t i) const { return is_floating(dtype) ? reals[i] : static_cast<double>(ints[i]); }
};

// The element type of a TensorProto::DataType; types without a counterpart take one of the same width. Nothing for
// undefined types and strings.
std::optional<DType> dtype_of(int32_t onnx_type);

// Elements of a shape, or nothing: a negative extent, rank above kMaxRank, or more than kMaxElements even when
// extents of 0 are skipped (so that no partial product overflows either).
std::optional<int64_t> checked_elements(const Shape& shape);
std::string text_of(const Shape& shape);

// Checks type, shape and length of the data. External data, and tensors stripped of their data, are not known.
Result<Constant> read_tensor(const onnx::TensorProto& tensor);
// Stored sparse, used dense: type and shape only.
Result<Constant> read_sparse(const onnx::SparseTensorProto& tensor);

}  // namespace forerun::ingest
