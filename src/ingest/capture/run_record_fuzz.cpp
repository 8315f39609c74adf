// Fuzzes the run/1 reader: the input is the bytes of a plain .jsonl file. Whatever it reads must verify, and what it
// writes must read back.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "ingest/capture/run_record.h"
#include "ingest/capture/run_record_writer.h"

namespace {

void read_all(std::string_view text, forerun::Fields fields) {
  auto reader = forerun::RunRecordReader::from_text(text, "fuzz", fields);
  while (true) {
    auto record = reader.next();
    if (!record.ok()) {
      CHECK(!record.error().what.empty() && !record.error().where.empty(), "an error without what or where");
      continue;
    }
    if (!record->has_value()) return;
    if (!(*record)->has_graph) continue;
    const forerun::TrainingRun& run = (*record)->run;
    CHECK(forerun::verify(run.graph).ok(), "the reader gave a graph that does not verify");
    const std::string written = forerun::to_run_record(run);
    auto again = forerun::RunRecordReader::from_text(written, "written", forerun::Fields::inputs).next();
    CHECK(again.ok() && again->has_value(), "what was written does not read back: " + written);
    CHECK((*again)->run.graph.op_count() == run.graph.op_count(), "ops were lost in writing");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_all(text, forerun::Fields::inputs);
  read_all(text, forerun::Fields::inputs_and_measurements);
  return 0;
}
