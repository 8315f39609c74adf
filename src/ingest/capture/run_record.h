// RunRecordReader: the records of a run/1 file (JSON Lines, plain or gzip) as training runs.
//
// A broken record is an Error and the next call goes on with the record after it; a broken file (truncated,
// unreadable) is an Error after which nothing follows. With Fields::inputs what was measured is never read.
//
// What changes on the way from the file to the graph: `profiler.*` ops are marks, not work, and are left out, so the
// ops after them move up (frees and kernels with them); roots freed at the very end live on, because the end of the
// capturing function freed them, not the iteration; schema and id may be missing.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"
#include "graph/training_run.h"
#include "ingest/capture/record_decoder.h"

namespace forerun {

// What was measured when the run was captured; ops are numbered as in the graph.
struct Measurement {
  bool out_of_memory = false;
  double pipelined_median_ms = 0;  // time of an iteration, back to back
  double gpu_busy_us = 0;          // sum of all kernels of one profiled iteration
  std::vector<double> op_gpu_us;   // by op
  std::vector<uint32_t> op_kernels;
  std::array<double, 3> host_us = {};  // by Phase, in the profiled iteration
  Bytes peak_allocated, peak_reserved, peak_active, peak_requested, allocated;
  bool aligned = true;  // false: kernels were matched to ops by name
};

struct RunRecord {
  TrainingRun run;
  bool has_graph = true;  // false: the record of a run that did not fit in memory may hold no ops
  std::optional<Measurement> measured;
};

class RunRecordReader {
 public:
  static Result<RunRecordReader> open(const std::string& path, Fields fields);
  // The text of a plain file; `name` stands for it in errors.
  static RunRecordReader from_text(std::string_view text, const std::string& name, Fields fields);

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

}  // namespace forerun
