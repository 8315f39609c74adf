// Several record files as one: without repeats, and smaller.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "records/data_scan.h"

namespace forerun {

struct MergeOptions {
  bool compact = false;    // run records become run/3, op samples lose their ids: record_compactor.h
  bool overwrite = false;  // of the result, where it is there already
  std::function<void(const DataProblem&)> problem;
};

struct MergeResult {
  int64_t runs = 0;  // written
  int64_t samples = 0;
  int64_t repeats = 0;   // left out: the id was there already
  int64_t replaced = 0;  // of them, records of failure that gave way to one that succeeded
  int64_t compacted = 0;
  int64_t torn = 0;
  int64_t broken = 0;  // lines that `forerun data check` calls broken, left out; and records not compacted, kept
};

// Writes the records of `files` to `out`, which is plain, .gz or .zst by its name, and takes its place only when whole.
// Of records with one id the first is kept, or the first that succeeded. Records without an id are all kept. Lines are
// copied as they stand. What is broken (records/data_check.h) is left out and goes to `problem`; where nothing is left, that is
// an Error. Reads the files twice; what is kept in memory is the ids, where broken records stand, and one record.
Result<MergeResult> merge_data(const std::string& out, const std::vector<std::string>& files,
                               const MergeOptions& options, const WorkControl& control = {});

}  // namespace forerun
