// Fuzzes how files are told apart: any bytes are of one kind, the same when asked again, and what refuses them has
// words.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/fuzz_file.h"
#include "ingest/importers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using forerun::FileKind;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const FileKind told = forerun::sniff(bytes);
  CHECK(told != FileKind::folder && told != FileKind::stream, "bytes that are no file");
  CHECK(told == forerun::sniff(bytes), "another kind when asked again");
  for (const char* verb : {"predict", "fit", "whatif", "trace", "data", "no such verb"}) {
    if (forerun::takes(verb, told)) continue;
    const forerun::Error error = forerun::refused_file(told, "fuzz", verb);
    CHECK(!error.what.empty() && error.where == "fuzz", "an error without what or where");
  }
  const forerun::FuzzFile file(data, size);
  const auto kind = forerun::sniff_file(file.path());
  if (!kind.ok()) {
    CHECK(!kind.error().what.empty() && !kind.error().where.empty(), "an error without what or where");
  }
  return 0;
}
