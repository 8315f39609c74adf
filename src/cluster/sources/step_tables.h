// StepTables: step times of applications measured by placement, from the archives that came with two schedulers:
//
//   Pollux  traces/APPLICATION/placements.csv, scalability.csv                      on T4 GPUs, four to a node
//   Titan   .../fminfo/TYPE/APPLICATION_placements.csv, APPLICATION_scalability.csv on A100 and V100, four to a node
//
//   placement,local_bsz,step_time,sync_time                "31": three GPUs on one node and one on another
//   num_nodes,num_replicas,local_bsz,step_time,sync_time
//
// Other files of the archives are passed over.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/sources/tar_members.h"
#include "cluster/speed_table.h"

namespace forerun::cluster {

inline constexpr int32_t kMeasuredGpusPerNode = 4;

class StepTables {
 public:
  static Result<StepTables> read(const std::vector<TarMember>& members, const std::string& name);

  // Has an application pass at most so many samples at a time.
  void limit_batch(const std::string& application, double local_batch);
  [[nodiscard]] const SpeedTable* find(const std::string& application, const std::string& type) const;
  [[nodiscard]] const std::vector<std::string>& types() const { return types_; }  // as canonical_type() writes them
  [[nodiscard]] std::vector<std::string> applications() const;
  // How fast jobs of these kinds run, with `batch` samples in all (by job), on pools of these types.
  [[nodiscard]] SpeedModel speeds(const std::vector<std::string>& kinds, const std::vector<std::string>& types,
                                  std::vector<double> batch) const;

 private:
  std::map<std::pair<std::string, std::string>, SpeedTable> tables_;  // by application and type
  std::vector<std::string> types_;
};

}  // namespace forerun::cluster
