// Fuzzes the reader of packed sections: whatever it takes must unpack or say why not.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/packed_sections.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto sections = forerun::PackedSections::parse(std::string(reinterpret_cast<const char*>(data), size));
  if (!sections.ok()) {
    CHECK(!sections.error().what.empty(), "an error without what");
    return 0;
  }
  for (const std::string& name : sections->names()) {
    const auto bytes = sections->unpack(name);
    CHECK(bytes.ok() || !bytes.error().what.empty(), "an error without what");
  }
  return 0;
}
