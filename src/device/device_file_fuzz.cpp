// Fuzzes the reader of device and link files. What is read must be found by its name.
#include <cstdint>

#include "base/fuzz_file.h"
#include "device/catalogue.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const forerun::FuzzFile file(data, size);
  forerun::DeviceCatalogue catalogue;
  const forerun::Status added = catalogue.add_file(file.path());
  if (!added.ok()) {
    CHECK(!added.error().what.empty() && !added.error().where.empty(), "an error without what or where");
    return 0;
  }
  for (const forerun::Device& device : catalogue.devices()) {
    CHECK(catalogue.find(device.name).ok(), "a device that cannot be found by its name");
  }
  for (const forerun::Link& link : catalogue.links()) {
    CHECK(catalogue.find_link(link.name).ok(), "a link that cannot be found by its name");
  }
  return 0;
}
