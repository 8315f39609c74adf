// OpSample: one op timed alone, as a line of schema op/1 has it; docs/records.md says how it was measured.
//
//   {"schema": "op/1", "id": "3f1c", "grid": "gemm", "op": "aten.mm.default", "attributes": {}, "precision": "fp32",
//    "inputs": [["float32", [8, 4], null], ["float32", [4, 2], [1, 4]], null], "outputs": [["float32", [8, 2], null]],
//    "status": "ok", "us": 4.2, "spread": 0.03, "kernels": [["gemm_kernel", 4.1]], "workspace": 0}
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"
#include "graph/attribute.h"
#include "graph/training_run.h"
#include "ingest/capture/measurement.h"

namespace forerun {

struct SampleTensor {
  DType dtype = DType::float32;
  Shape shape;
  std::optional<Shape> strides;  // missing: contiguous
};

// A kernel of a call, or all of one name where a call has many; all of them, without a name, in a packed sample.
struct SampleKernel {
  std::string name;
  double us = 0;  // together
  int64_t count = 1;
};

struct OpSample {
  std::string id;  // may be empty
  std::string grid;
  std::string family;  // of the iteration that it was part of; empty: timed alone
  std::string op;
  Attributes attributes;
  std::vector<std::optional<SampleTensor>> inputs, outputs;  // missing: an optional tensor that was not given
  Precision precision = Precision::fp32;
  RunStatus status = RunStatus::ok;
  std::string error;  // of a sample that failed
  double us = 0;      // GPU time of one call
  double spread = 0;
  std::vector<SampleKernel> kernels;  // empty: the profiler did not tell
  Bytes workspace;                    // at its peak, beyond the outputs

  // What computes: the type of the first floating input, of the first input where none is.
  [[nodiscard]] std::optional<DType> dtype() const;
  [[nodiscard]] int64_t kernel_count() const;
};

class OpSampleDecoder {
 public:
  OpSampleDecoder();
  OpSampleDecoder(OpSampleDecoder&&) noexcept;
  OpSampleDecoder& operator=(OpSampleDecoder&&) noexcept;
  ~OpSampleDecoder();

  // `line` must be followed by LineReader::kPadding readable bytes. The Error says what is wrong, and not where.
  Result<OpSample> decode(std::string_view line);
  // A line of schema env/1.
  Result<Environment> decode_environment(std::string_view line);
  // The id of the sample decoded last, even if broken.
  [[nodiscard]] const std::string& id() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The samples of a file that may hold run records too, with the environment they were taken in. Errors as in
// RunRecordReader (run_record.h).
class OpSampleReader {
 public:
  static Result<OpSampleReader> open(const std::string& path);
  static OpSampleReader from_text(std::string_view text, const std::string& name);

  OpSampleReader(OpSampleReader&&) noexcept;
  OpSampleReader& operator=(OpSampleReader&&) noexcept;
  ~OpSampleReader();

  Result<std::optional<OpSample>> next();
  [[nodiscard]] const Environment& environment() const;  // of the sample that next() gave last
  [[nodiscard]] bool file_broken() const;

 private:
  class Impl;
  explicit OpSampleReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace forerun
