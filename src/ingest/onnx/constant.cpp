#include "ingest/onnx/constant.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "ingest/onnx/dataflow.h"

namespace forerun::ingest {
namespace {

// Types that onnx.proto of 1.12 does not list yet.
enum LaterType : int32_t {
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22
};

bool is_half_byte(int32_t type) { return type == kUint4 || type == kInt4; }

int64_t raw_bytes(int32_t type, DType dtype, int64_t elements) {
  return is_half_byte(type) ? (elements + 1) / 2 : elements * size_of(dtype);
}

int64_t stated_elements(const onnx::TensorProto& tensor) {
  switch (tensor.data_type()) {
    case onnx::TensorProto::FLOAT: return tensor.float_data_size();
    case onnx::TensorProto::COMPLEX64: return tensor.float_data_size() / 2;
    case onnx::TensorProto::DOUBLE: return tensor.double_data_size();
    case onnx::TensorProto::COMPLEX128: return tensor.double_data_size() / 2;
    case onnx::TensorProto::INT64: return tensor.int64_data_size();
    case onnx::TensorProto::UINT32:
    case onnx::TensorProto::UINT64: return tensor.uint64_data_size();
    case onnx::TensorProto::STRING: return tensor.string_data_size();
    default: return tensor.int32_data_size();
  }
}

double half_to_double(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  return exponent == 0 ? sign * std::ldexp(mantissa, -24) : sign * std::ldexp(1024 + mantissa, exponent - 25);
}

double bfloat_to_double(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

template <class T>
T raw_at(const onnx::TensorProto& tensor, size_t i) {
  T value;
  std::memcpy(&value, tensor.raw_data().data() + i * sizeof(T), sizeof(T));  // ONNX stores little-endian
  return value;
}

// False where this type's contents are not kept.
bool read_reals(const onnx::TensorProto& tensor, size_t count, std::vector<double>& out) {
  const bool raw = tensor.has_raw_data();
  for (size_t i = 0; i < count; ++i) {
    const int at = static_cast<int>(i);
    switch (tensor.data_type()) {
      case onnx::TensorProto::FLOAT: out.push_back(raw ? raw_at<float>(tensor, i) : tensor.float_data(at)); break;
      case onnx::TensorProto::DOUBLE: out.push_back(raw ? raw_at<double>(tensor, i) : tensor.double_data(at)); break;
      case onnx::TensorProto::FLOAT16:
        out.push_back(half_to_double(raw ? raw_at<uint16_t>(tensor, i) : static_cast<uint16_t>(tensor.int32_data(at))));
        break;
      case onnx::TensorProto::BFLOAT16:
        out.push_back(
            bfloat_to_double(raw ? raw_at<uint16_t>(tensor, i) : static_cast<uint16_t>(tensor.int32_data(at))));
        break;
      default: return false;
    }
  }
  return true;
}

int64_t raw_integer(const onnx::TensorProto& tensor, size_t i) {
  switch (tensor.data_type()) {
    case onnx::TensorProto::INT64: return raw_at<int64_t>(tensor, i);
    case onnx::TensorProto::UINT64: return static_cast<int64_t>(raw_at<uint64_t>(tensor, i));
    case onnx::TensorProto::INT32: return raw_at<int32_t>(tensor, i);
    case onnx::TensorProto::UINT32: return raw_at<uint32_t>(tensor, i);
    case onnx::TensorProto::INT16: return raw_at<int16_t>(tensor, i);
    case onnx::TensorProto::UINT16: return raw_at<uint16_t>(tensor, i);
    case onnx::TensorProto::INT8: return raw_at<int8_t>(tensor, i);
    default: return raw_at<uint8_t>(tensor, i);
  }
}

int64_t stated_integer(const onnx::TensorProto& tensor, size_t i) {
  const int at = static_cast<int>(i);
  switch (tensor.data_type()) {
    case onnx::TensorProto::INT64: return tensor.int64_data(at);
    case onnx::TensorProto::UINT32:
    case onnx::TensorProto::UINT64: return static_cast<int64_t>(tensor.uint64_data(at));
    default: return tensor.int32_data(at);
  }
}

Error length_error(const onnx::TensorProto& tensor, const Shape& shape, int64_t have, std::string_view unit,
                   int64_t want) {
  return {fmt::format("tensor '{}' of shape {} holds {} {}, not {}", printable(tensor.name()), text_of(shape), have,
                      unit, want),
          "", "the file is damaged; export the model again"};
}

}  // namespace

Constant Constant::of_ints(std::vector<int64_t> values, Shape shape, DType dtype) {
  return {.dtype = dtype, .shape = std::move(shape), .known = true, .ints = std::move(values), .reals = {}};
}

Constant Constant::list(std::vector<int64_t> values) {
  const auto length = static_cast<int64_t>(values.size());
  return of_ints(std::move(values), {length});
}

std::optional<DType> dtype_of(int32_t onnx_type) {
  switch (onnx_type) {
    case onnx::TensorProto::FLOAT: return DType::float32;
    case onnx::TensorProto::DOUBLE: return DType::float64;
    case onnx::TensorProto::FLOAT16: return DType::float16;
    case onnx::TensorProto::BFLOAT16: return DType::bfloat16;
    case onnx::TensorProto::INT64:
    case onnx::TensorProto::UINT64: return DType::int64;
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::UINT32: return DType::int32;
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::UINT16: return DType::int16;
    case onnx::TensorProto::INT8:
    case kInt4: return DType::int8;
    case onnx::TensorProto::UINT8:
    case kUint4: return DType::uint8;
    case onnx::TensorProto::BOOL: return DType::boolean;
    case onnx::TensorProto::COMPLEX64: return DType::complex64;
    case onnx::TensorProto::COMPLEX128: return DType::complex128;
    case kFloat8E4M3FN:
    case kFloat8E4M3FNUZ: return DType::float8_e4m3fn;
    case kFloat8E5M2:
    case kFloat8E5M2FNUZ: return DType::float8_e5m2;
    default: return std::nullopt;
  }
}

std::optional<int64_t> checked_elements(const Shape& shape) {
  if (shape.size() > kMaxRank) return std::nullopt;
  int64_t product = 1;
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      empty = true;
      continue;
    }
    if (product > kMaxElements / extent) return std::nullopt;
    product *= extent;
  }
  return empty ? 0 : product;
}

std::string text_of(const Shape& shape) {
  if (shape.size() <= kMaxRank) return fmt::format("[{}]", fmt::join(shape, ", "));
  return fmt::format("of rank {}", shape.size());
}

Result<Constant> read_tensor(const onnx::TensorProto& tensor) {
  const auto fault = [&](const std::string& what) {
    return Error{fmt::format("tensor '{}' {}", printable(tensor.name()), what), "", "export the model again"};
  };
  const std::optional<DType> dtype = dtype_of(tensor.data_type());
  const bool strings = tensor.data_type() == onnx::TensorProto::STRING;
  if (!dtype && !strings) return fault(fmt::format("has the unknown element type {}", tensor.data_type()));
  Constant out;
  out.dtype = dtype.value_or(DType::uint8);
  out.shape.assign(tensor.dims().begin(), tensor.dims().end());
  const std::optional<int64_t> elements = checked_elements(out.shape);
  if (!elements) return fault(fmt::format("has the impossible shape {}", text_of(out.shape)));

  const int64_t stated = stated_elements(tensor);
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) return out;
  if (tensor.has_raw_data()) {
    const int64_t bytes = raw_bytes(tensor.data_type(), out.dtype, *elements);
    const auto have = static_cast<int64_t>(tensor.raw_data().size());
    if (strings || have != bytes) return length_error(tensor, out.shape, have, "bytes", bytes);
  } else if (stated != *elements && !is_half_byte(tensor.data_type())) {
    if (stated == 0) return out;  // stripped of its data: only shape and type are known
    return length_error(tensor, out.shape, stated, "elements", *elements);
  }
  if (strings || is_half_byte(tensor.data_type()) || *elements > kMaxKnownElements) return out;
  const auto count = static_cast<size_t>(*elements);
  if (is_floating(out.dtype)) {
    out.known = read_reals(tensor, count, out.reals);
    if (!out.known) out.reals.clear();
    return out;
  }
  for (size_t i = 0; i < count; ++i) {
    out.ints.push_back(tensor.has_raw_data() ? raw_integer(tensor, i) : stated_integer(tensor, i));
  }
  out.known = true;
  return out;
}

Result<Constant> read_sparse(const onnx::SparseTensorProto& tensor) {
  onnx::TensorProto dense;
  dense.set_name(tensor.values().name());
  dense.set_data_type(tensor.values().data_type());
  *dense.mutable_dims() = tensor.dims();
  return read_tensor(dense);
}

}  // namespace forerun::ingest
