// RunRecordReader: the run records of a file (JSON Lines; plain, gzip or Zstandard) as training runs; docs/records.md has
// the format. All forms give the same runs, but that run/1 does not tell strides.
//
// A broken record is an Error and the next call goes on with the record after it; a broken file (truncated,
// unreadable) is an Error after which nothing follows. With Fields::inputs what was measured is never read. Lines of
// other schemas (op/1, env/1) are passed over.
//
// What changes on the way from the file to the graph: `profiler.*` ops are marks, not work, and are left out, so the
// ops after them move up (frees and kernels with them); roots freed at the very end live on, because the end of the
// capturing function freed them, not the iteration; schema and id may be missing. A tensor's offset in its storage is
// checked and not kept.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "graph/training_run.h"
#include "ingest/capture/allocator_trace.h"
#include "ingest/capture/measurement.h"
#include "ingest/capture/record_columns.h"
#include "ingest/capture/size_forms.h"

namespace forerun {

struct RunRecord {
  TrainingRun run;
  bool has_graph = true;  // false: a run that did not fit in memory or failed may hold no ops; Fields::description
  std::optional<Measurement> measured;
  std::optional<AllocatorTrace> allocator;  // with Fields::everything
};

// One line at a time, for those who read the lines themselves.
class RunDecoder {
 public:
  RunDecoder();
  RunDecoder(RunDecoder&&) noexcept;
  RunDecoder& operator=(RunDecoder&&) noexcept;
  ~RunDecoder();

  // `line` must be followed by LineReader::kPadding readable bytes. The Error says what is wrong, and not where. With
  // `sizes` the record at another batch or length, where it says how it moves (size_forms.h).
  Result<RunRecord> decode(std::string_view line, Fields fields, const RecordSizes& sizes = {});
  // The id of the record decoded last, even if broken; empty where it was not reached.
  [[nodiscard]] const std::string& id() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

class RunRecordReader {
 public:
  static Result<RunRecordReader> open(const std::string& path, Fields fields, const RecordSizes& sizes = {});
  // The text of a plain file; `name` stands for it in errors.
  static RunRecordReader from_text(std::string_view text, const std::string& name, Fields fields,
                                   const RecordSizes& sizes = {});

  RunRecordReader(RunRecordReader&&) noexcept;
  RunRecordReader& operator=(RunRecordReader&&) noexcept;
  ~RunRecordReader();

  // The next record; nothing at the end.
  Result<std::optional<RunRecord>> next();

  // Whether the file itself proved broken: the last Error was not about one record.
  [[nodiscard]] bool file_broken() const;

 private:
  class Impl;
  explicit RunRecordReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What to do about a record that is broken.
inline constexpr const char* kBrokenRecordRemedy = "capture the run again, or leave the record out";

}  // namespace forerun
