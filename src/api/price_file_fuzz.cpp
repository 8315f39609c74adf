// Fuzzes the reader of price files. What is read are prices that make sense, of GPUs that there are.
#include <cstdint>
#include <string>

#include "api/prices.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const forerun::DeviceCatalogue catalogue = [] {
    forerun::DeviceCatalogue made;
    forerun::Device device;
    device.name = "NVIDIA T4";
    device.aliases = {"t4"};
    CHECK(made.add(device).ok(), "a device that cannot be added");
    return made;
  }();
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto prices = forerun::parse_price_file(text, "prices.toml", catalogue);
  if (!prices.ok()) {
    CHECK(!prices.error().what.empty() && !prices.error().where.empty(), "an error without what or where");
    return 0;
  }
  CHECK(prices->any(), "a price file without prices");
  for (const forerun::GpuPrice& price : prices->gpus) {
    CHECK(price.per_hour >= 0 && price.per_hour <= 1e6, "an odd price");
    CHECK(prices->of(price.gpu) == price.per_hour, "a price that is not found");
  }
  return 0;
}
