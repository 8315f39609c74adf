// "What do these record files hold, and can they be used?": the questions of `forerun data`. The stage records/ answers them.
//
// A request names files and folders as users do. What is wrong with single records goes to `problem` as it is found; the
// others go on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/work_control.h"
#include "records/data_check.h"
#include "records/data_files.h"
#include "records/data_merge.h"
#include "records/data_noise.h"
#include "records/data_summary.h"
#include "records/machine_records.h"

namespace forerun {

struct DataRequest {
  std::vector<std::string> paths;  // files, or folders of them
  std::function<void(const DataProblem&)> problem;
};

// Counts by family, split, precision, bound and op. An Error where there is nothing to count.
Result<DataSummary> data_summary(const DataRequest& request, const WorkControl& control = {});

// How far repeated measurements lie apart. An Error where nothing was measured.
Result<DataNoise> data_noise(const DataRequest& request, const WorkControl& control = {});

// Hands every iteration record to `record`, without its graph. An Error where there is none.
Status data_list(const DataRequest& request, const std::function<void(const RunRecord&)>& record,
                 const WorkControl& control = {});

// Whether every record can be used, and every machine.json. Files that cannot be read or hold no record go to `unreadable`.
Result<DataCheck> data_check(const DataRequest& request, const std::function<void(const Error&)>& unreadable,
                             const WorkControl& control = {});

struct DataMergeRequest {
  std::string out;  // .jsonl, .jsonl.gz or .jsonl.zst
  std::vector<std::string> paths;
  MergeOptions options;
};

// Several files as one, each id once: record files, or machine.json files, whose ops become records. `out` takes its place when it is whole.
Result<MergeResult> data_merge(const DataMergeRequest& request, const WorkControl& control = {});

}  // namespace forerun
