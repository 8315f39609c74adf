// Reads the record files of a data set one record at a time: memory is bounded by the largest record.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/work_control.h"
#include "ingest/capture/op_sample.h"
#include "ingest/capture/run_record.h"

namespace forerun {

// What is wrong with one line of a file.
struct DataProblem {
  enum class Kind : uint8_t {
    broken,   // the record cannot be used
    torn,     // the last line has no end: whoever wrote it was stopped, and nothing else is lost
    warning,  // the record can be used
  };
  Kind kind = Kind::broken;
  std::string file;
  int64_t line = 0;
  std::string id;  // where it was reached
  std::string what;

  [[nodiscard]] Error error() const;  // as other readers put it: "runs.jsonl, record 3 (resnet-17)"
};

inline constexpr const char* kTornLine = "the last line is torn, its writer was stopped: passed over";

// Whether a line that cannot be read was cut short while a record was written: it has no end, and begins as records do, or with the
// zeros that a machine leaves which stopped before they were filled in.
[[nodiscard]] bool is_torn(std::string_view line, bool ended);

// Where a record stands.
struct DataPlace {
  const std::string& file;
  int64_t line = 0;
};

struct DataHandlers {
  std::function<void(const RunRecord&, const DataPlace&)> run;    // null: run records are passed over
  std::function<void(const OpSample&, const DataPlace&)> sample;  // null: samples are passed over
  std::function<void(const DataProblem&)> problem;
};

// All records of one file, in order. An Error where the file cannot be read to its end, or where `work`, which counts
// lines, does not go on; records before it were handled.
Status scan_file(const std::string& file, Fields fields, const DataHandlers& handlers, Work& work);

// All files, in order; stops at the first that cannot be read.
Status scan_files(const std::vector<std::string>& files, Fields fields, const DataHandlers& handlers, Work& work);
Status scan_files(const std::vector<std::string>& files, Fields fields, const DataHandlers& handlers,
                  const WorkControl& control = {});

}  // namespace forerun
