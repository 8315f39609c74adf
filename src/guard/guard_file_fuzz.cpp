// Fuzzes the reader of forerun.toml. What is read are guards with names of their own and words that are JSON objects.
#include <cstdint>
#include <set>
#include <string>

#include "base/check.h"
#include "base/json_file.h"
#include "guard/guard_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto guards = forerun::guard::parse_guards(text, "forerun.toml");
  if (!guards.ok()) {
    CHECK(!guards.error().what.empty() && !guards.error().where.empty(), "an error without what or where");
    return 0;
  }
  std::set<std::string> names;
  for (const forerun::guard::GuardEntry& guard : *guards) {
    CHECK(names.insert(guard.name).second, "two guards of one name");
    CHECK(forerun::JsonObject::parse(guard.words, "words").ok(), "words that are no JSON object");
    CHECK(forerun::JsonObject::parse(guard.asked, "asked").ok(), "words that are no JSON object");
  }
  return 0;
}
