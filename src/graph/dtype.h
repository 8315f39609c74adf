// Element types of tensors, by PyTorch's names.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace forerun {

enum class DType : uint8_t {
  float32,
  float64,
  float16,
  bfloat16,
  float8_e4m3fn,
  float8_e5m2,
  int64,
  int32,
  int16,
  int8,
  uint8,
  uint64,
  boolean,
  complex64,
  complex128,
};

int64_t size_of(DType dtype);
bool is_floating(DType dtype);
std::string_view name_of(DType dtype);                    // "float32", "bool", ...
std::optional<DType> dtype_named(std::string_view name);  // the inverse

// The type of an elementwise result of two floating tensors: float16 with bfloat16 gives float32.
DType promote(DType a, DType b);

}  // namespace forerun
