#include "device/device.h"

#include <algorithm>
#include <cctype>

namespace forerun {

std::string_view name_of(Unit unit) {
  switch (unit) {
    case Unit::fp64: return "fp64";
    case Unit::fp32: return "fp32";
    case Unit::fp32_matrix: return "fp32_matrix";
    case Unit::fp16: return "fp16";
    case Unit::tf32_tensor: return "tf32_tensor";
    case Unit::fp16_tensor: return "fp16_tensor";
    case Unit::bf16_tensor: return "bf16_tensor";
    case Unit::int8_tensor: return "int8_tensor";
    case Unit::fp8_tensor: return "fp8_tensor";
  }
  return "?";
}

std::string_view name_of(Measured measured) {
  switch (measured) {
    case Measured::never: return "never";
    case Measured::elsewhere: return "elsewhere";
    case Measured::here: return "here";
  }
  return "?";
}

double PeakRates::of(Unit unit) const {
  switch (unit) {
    case Unit::fp64: return fp64;
    case Unit::fp32: return fp32;
    case Unit::fp32_matrix: return fp32_matrix;
    case Unit::fp16: return fp16;
    case Unit::tf32_tensor: return tf32_tensor;
    case Unit::fp16_tensor: return fp16_tensor;
    case Unit::bf16_tensor: return bf16_tensor;
    case Unit::int8_tensor: return int8_tensor;
    case Unit::fp8_tensor: return fp8_tensor;
  }
  return 0;
}

bool Device::is_nvidia() const {
  constexpr std::string_view kVendor = "nvidia";
  return std::equal(vendor.begin(), vendor.end(), kVendor.begin(), kVendor.end(),
                    [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

std::string Device::capability_text() const {
  if (compute_capability == 0) return "";
  return std::to_string(compute_capability / 10) + "." + std::to_string(compute_capability % 10);
}

Unit Device::unit_or_fallback(Unit unit) const {
  if (peak.of(unit) > 0) return unit;
  switch (unit) {
    case Unit::tf32_tensor: return unit_or_fallback(Unit::fp32_matrix);
    case Unit::fp16_tensor: return unit_or_fallback(Unit::fp16);
    case Unit::fp8_tensor: return unit_or_fallback(Unit::bf16_tensor);
    default: return Unit::fp32;
  }
}

}  // namespace forerun
