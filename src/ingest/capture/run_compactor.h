// RunCompactor: a run/1 line -> the same record as a run/2 line.
//
// ops, storages, frees, roots, kernels and alloc_trace become columns, with their tables; every other field is copied as
// it stands, known or not. Lossless for what docs/records.md lists: read back, both lines give the same graph and the
// same measurement. What goes: entries beyond those that run/1 documents, and digits of kernel times below a nanosecond.
// Strides are not in run/1, and so not in the result; its allocator trace has ids and no address_base.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace forerun {

class RunCompactor {
 public:
  RunCompactor();
  RunCompactor(RunCompactor&&) noexcept;
  RunCompactor& operator=(RunCompactor&&) noexcept;
  ~RunCompactor();

  // `line` must be followed by LineReader::kPadding readable bytes. The Error says what is wrong, and not where.
  Result<std::string> compact(std::string_view line);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forerun
