// Jobs made of measured training runs, so that both a job's true time and what `forerun predict` says of it are known:
// `forerun schedule data/h200 --format records`.
//
// Every run that was measured is a job on one GPU of its type, submitted at 0, in an order drawn at random. It does as many
// iterations as are drawn for it (log-normal, median 20,000, spread 1.5) and takes iterations x measured step. Families
// that a split.json beside the files trains on are left out: the predictor has seen them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/sources/loaded_jobs.h"

namespace forerun {

struct RecordJobs {
  cluster::LoadedJobs loaded;
  std::vector<std::string> files;
};

// `path`: a file of run records or a folder of them.
Result<RecordJobs> load_record_jobs(const std::string& path, const cluster::LoadOptions& options, uint64_t seed);

}  // namespace forerun
