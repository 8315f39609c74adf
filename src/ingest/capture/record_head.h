// RecordHead: what kind of record a line of a record file is, and which; the rest of the line is passed over.
//
// A file may mix run records (run/1 to run/3), op samples (op/1) and the environments that samples were taken in (env/1).
// A line without a schema is a run record: programs may strip it.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "ingest/capture/measurement.h"

namespace forerun {

enum class RecordKind : uint8_t { run, sample, environment, other };

struct RecordHead {
  RecordKind kind = RecordKind::run;
  std::string_view schema;  // empty: missing. These views hold until the next read().
  std::string_view id;
  std::optional<RunStatus> status;
};

class RecordHeadReader {
 public:
  RecordHeadReader();
  RecordHeadReader(RecordHeadReader&&) noexcept;
  RecordHeadReader& operator=(RecordHeadReader&&) noexcept;
  ~RecordHeadReader();

  // Lines must be followed by LineReader::kPadding readable bytes.
  // The kind alone; at once where `schema` comes first, as our writers put it. `run` where the line is no JSON object.
  RecordKind kind(std::string_view line);
  // An Error where the line is not one JSON object from end to end: brackets and strings are followed, values are not.
  Result<RecordHead> read(std::string_view line);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forerun
