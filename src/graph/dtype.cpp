#include "graph/dtype.h"

#include <array>

#include "base/check.h"

namespace forerun {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  int64_t bytes;
  bool floating;
};

constexpr std::array kDTypes = {
    DTypeRow{DType::float32, "float32", 4, true},
    DTypeRow{DType::float64, "float64", 8, true},
    DTypeRow{DType::float16, "float16", 2, true},
    DTypeRow{DType::bfloat16, "bfloat16", 2, true},
    DTypeRow{DType::float8_e4m3fn, "float8_e4m3fn", 1, true},
    DTypeRow{DType::float8_e5m2, "float8_e5m2", 1, true},
    DTypeRow{DType::int64, "int64", 8, false},
    DTypeRow{DType::int32, "int32", 4, false},
    DTypeRow{DType::int16, "int16", 2, false},
    DTypeRow{DType::int8, "int8", 1, false},
    DTypeRow{DType::uint8, "uint8", 1, false},
    DTypeRow{DType::uint64, "uint64", 8, false},
    DTypeRow{DType::boolean, "bool", 1, false},
    DTypeRow{DType::complex64, "complex64", 8, true},
    DTypeRow{DType::complex128, "complex128", 16, true},
};

const DTypeRow& row(DType dtype) {
  const DTypeRow& found = kDTypes[static_cast<size_t>(dtype)];
  CHECK(found.dtype == dtype, "kDTypes is out of order");
  return found;
}

}  // namespace

int64_t size_of(DType dtype) { return row(dtype).bytes; }
bool is_floating(DType dtype) { return row(dtype).floating; }
std::string_view name_of(DType dtype) { return row(dtype).name; }

std::optional<DType> dtype_named(std::string_view name) {
  for (const DTypeRow& r : kDTypes) {
    if (r.name == name) return r.dtype;
  }
  return std::nullopt;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (!is_floating(a)) return is_floating(b) || size_of(b) > size_of(a) ? b : a;
  if (!is_floating(b)) return a;
  if (size_of(a) == size_of(b)) return DType::float32;
  return size_of(a) > size_of(b) ? a : b;
}

}  // namespace forerun
