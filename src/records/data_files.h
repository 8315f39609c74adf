// The files of a data set, and the split of its families into those to train on and those to test on.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace forerun {

// Files as they are named, and for a folder all record files (*.jsonl, *.jsonl.gz, *.jsonl.zst) in and below it, by
// name. A path that is not there, a file of another kind and a folder without records are Errors; a file named twice counts
// once.
Result<std::vector<std::string>> record_files(const std::vector<std::string>& paths);

// Which part of the split each family belongs to, from the split.json beside any of the files:
//   {"train": ["resnet", "rnn"], "test": ["vgg"], "ood": ["randwire"]}
// Nothing where there is none.
Result<std::map<std::string, std::string>> family_splits(const std::vector<std::string>& files);

// The families of the part `train`, but for `without`. A family of `without` that is not among them is an Error, which
// names the nearest.
Result<std::set<std::string>> training_families(const std::vector<std::string>& files,
                                                const std::set<std::string>& without);

// Where files were read and none of them has what was asked for ("iteration records"): there is no answer to give.
Error nothing_in(const std::vector<std::string>& files, const std::string& what);

}  // namespace forerun
