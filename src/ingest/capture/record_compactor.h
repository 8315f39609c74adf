// RecordCompactor: a record line -> the shortest line that says the same, for data sets that are kept.
//
// A run/1 or run/2 line becomes run/3 (docs/records.md): ops, storages, frees, roots, kernels and alloc_trace are columns,
// and columns whose numbers grow or repeat are packed as differences, distances and gaps; every other field is copied as
// it stands, known or not. Lossless for what docs/records.md lists: read back, both lines give the same graph, the same
// measurement and the same allocator trace. What goes: entries and columns that are not documented, digits of kernel
// times below a nanosecond, and when each kernel was launched, of which the figures `launches` stay. Strides are not in
// run/1, and so not in the result; its allocator trace has ids and no address_base.
//
// An op/1 line loses its id, which is a hash of what stands beside it and cannot be compressed.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace forerun {

class RecordCompactor {
 public:
  RecordCompactor();
  RecordCompactor(RecordCompactor&&) noexcept;
  RecordCompactor& operator=(RecordCompactor&&) noexcept;
  ~RecordCompactor();

  // Lines must be followed by LineReader::kPadding readable bytes. The Error says what is wrong, and not where.
  Result<std::string> compact_run(std::string_view line);
  Result<std::string> compact_sample(std::string_view line);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forerun
