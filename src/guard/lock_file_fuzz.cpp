// Fuzzes the reader of forerun.lock. What is read is written to a text that reads back to the same.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "guard/lock_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forerun::guard;
  const auto lock = parse_lock(std::string(reinterpret_cast<const char*>(data), size), "forerun.lock");
  if (!lock.ok()) {
    CHECK(!lock.error().what.empty() && !lock.error().where.empty(), "an error without what or where");
    return 0;
  }
  const std::string text = lock_text(*lock);
  const auto again = parse_lock(text, "forerun.lock");
  CHECK(again.ok(), "what was written does not read back");
  CHECK(lock_text(*again) == text, "what was written reads back to something else");
  return 0;
}
