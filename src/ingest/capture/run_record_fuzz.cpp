// Fuzzes the readers of record files: the input is the bytes of a plain .jsonl file. Whatever is read must verify, what
// is written must read back, and a run/1 record turned into run/2 must give the same graph.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/line_reader.h"
#include "ingest/capture/op_sample.h"
#include "ingest/capture/record_compactor.h"
#include "ingest/capture/record_head.h"
#include "ingest/capture/run_record.h"
#include "ingest/capture/run_record_writer.h"

namespace {

void read_all(std::string_view text, forerun::Fields fields, const forerun::RecordSizes& sizes = {}) {
  auto reader = forerun::RunRecordReader::from_text(text, "fuzz", fields, sizes);
  while (true) {
    auto record = reader.next();
    if (!record.ok()) {
      CHECK(!record.error().what.empty() && !record.error().where.empty(), "an error without what or where");
      continue;
    }
    if (!record->has_value()) return;
    if ((*record)->allocator) (void)forerun::check(*(*record)->allocator, false);
    if (!(*record)->has_graph) continue;
    const forerun::TrainingRun& run = (*record)->run;
    CHECK(forerun::verify(run.graph).ok(), "the reader gave a graph that does not verify");
    const std::string written = forerun::to_run_record(run);
    auto again = forerun::RunRecordReader::from_text(written, "written", forerun::Fields::inputs).next();
    CHECK(again.ok() && again->has_value(), "what was written does not read back: " + written);
    CHECK((*again)->run.graph.op_count() == run.graph.op_count(), "ops were lost in writing");
  }
}

void read_samples(std::string_view text) {
  auto reader = forerun::OpSampleReader::from_text(text, "fuzz");
  while (true) {
    auto sample = reader.next();
    CHECK(sample.ok() || !sample.error().what.empty(), "an error without what");
    if (sample.ok() && !sample->has_value()) return;
  }
}

void compact_all(std::string_view text) {
  auto lines = forerun::LineReader::from_text(text, "fuzz");
  forerun::RecordHeadReader heads;
  forerun::RunDecoder decoder;
  forerun::RecordCompactor compactor;
  while (true) {
    const auto line = lines.next();
    if (!line.ok() || !line->has_value()) return;
    if (heads.kind(**line) != forerun::RecordKind::run) continue;
    const auto before = decoder.decode(**line, forerun::Fields::everything);
    if (!before.ok() || !before->has_graph) continue;
    const auto compact = compactor.compact_run(**line);
    if (!compact.ok()) continue;
    CHECK(heads.read(**line).ok(), "a record that reads has no head");
    auto again = forerun::RunRecordReader::from_text(*compact, "compacted", forerun::Fields::everything).next();
    CHECK(again.ok() && again->has_value(), "what was compacted does not read back: " + again.error().message());
    CHECK((*again)->run.graph.op_count() == before->run.graph.op_count(), "ops were lost in compacting");
    CHECK((*again)->run.graph.tensors().size() == before->run.graph.tensors().size(), "tensors were lost");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto fields : {forerun::Fields::inputs, forerun::Fields::inputs_and_measurements,
                            forerun::Fields::description, forerun::Fields::everything}) {
    read_all(text, fields);
  }
  read_all(text, forerun::Fields::inputs, {.batch = 5});
  read_samples(text);
  compact_all(text);
  return 0;
}
