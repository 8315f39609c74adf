// The files of a data set.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace forerun {

// Files as they are named, and for a folder all record files (*.jsonl, *.jsonl.gz, *.jsonl.zst) in and below it, by
// name. A path that is not there, a file of another kind and a folder without records are Errors; a file named twice counts
// once.
Result<std::vector<std::string>> record_files(const std::vector<std::string>& paths);

// Where files were read and none of them has what was asked for ("iteration records"): there is no answer to give.
Error nothing_in(const std::vector<std::string>& files, const std::string& what);

}  // namespace forerun
