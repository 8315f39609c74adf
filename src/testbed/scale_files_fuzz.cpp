// Fuzzes the files of the models of many GPUs: the first byte picks the file, the rest is it.
#include <cstdint>
#include <string_view>

#include "base/fuzz_file.h"
#include "scale/efficiency.h"
#include "testbed/host_rates.h"
#include "testbed/resource_setting.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forerun::scale;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto check_error = [](const auto& read) {
    CHECK(read.ok() || !read.error().what.empty(), "an error without what");
  };
  const forerun::FuzzFile file(bytes.data(), bytes.size());
  switch (data[0] % 3) {
    case 0: check_error(read_efficiency(file.path())); break;
    case 1: check_error(read_host_rates(file.path())); break;
    default: check_error(resource_setting(bytes)); break;
  }
  return 0;
}
