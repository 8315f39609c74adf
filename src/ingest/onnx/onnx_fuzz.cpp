// Fuzzing entry of the ONNX importer: any bytes give a model or an Error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ingest/onnx/onnx_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  forerun::OnnxOptions options;
  options.batch = size % 3 == 0 ? 2 : 0;
  const auto model = forerun::read_onnx_bytes(bytes, "fuzz.onnx", options);
  if (!model && model.error().message().empty()) __builtin_trap();
  return 0;
}
