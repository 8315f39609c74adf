// Measured resources of distributed training (`resources/1` records) as data to learn from and to judge with.
//
// Every workload is built from the zoo as its record names it. Columns and globals come from that and from what
// `forerun predict` says of one worker's iteration alone on the GPU; simulated metrics from testbed/resource_simulation.h
// with constants of the hosts that `forerun calibrate testbed` fits to training families. Families are split as in
// data/h200/split.json, by which the models of GPU times were trained, so that nothing was fitted to a test family.
// Records of one id and setting are windows of one workload, whose numbers are their means. Records whose links used the
// machine's default congestion control are a setting of their own, "P1w2-10G-default". How links came to be shared
// (ingest/resources/link_state.h) nobody knows beforehand: a setting's workloads have all their windows, and the simulation is
// averaged over the ways that training families show. The same windows divided by it are further settings, "P1w2-10G-even".
// Simulated workloads, for pre-training, are of training families alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/resources/resource_record.h"
#include "lab/dataset/driple/workload.h"
#include "predict/cost_models.h"

namespace forerun {

inline constexpr const char* kResourceRecords = "resources";  // in the data folder

struct DripleDataOptions {
  std::vector<std::string> records;          // files; empty: the data folder's
  int64_t simulated = 0;                     // so many simulated workloads beside the measured ones
  uint64_t seed = 1;                         // of those
  std::vector<std::string> unmeasured = {};  // settings whose workloads are simulated, to be judged: "P2w4-10G"
  GpuTimes gpu_times = GpuTimes::clocks;     // kernels: the GPU kernel by kernel, of records that have seen it so alone
  std::function<void(const Error&)> problem;
};

// The records as they stand, of one setting or several; broken ones are left out and told.
Result<std::vector<ResourceRecord>> driple_records(const DripleDataOptions& options);
// Records that cannot be built are left out and told.
Result<learn::ResourceData> load_driple_data(const DripleDataOptions& options, const CostModels& cost_models);

// Thirteen settings, as many as Driple's paper has, and beyond those that were measured.
std::vector<std::string> thirteen_settings();

// In alphabetical order: those that were measured, undivided.
std::vector<std::string> measured_settings(const learn::ResourceData& data);
// The same with those of DripleDataOptions::unmeasured.
std::vector<std::string> judged_settings(const learn::ResourceData& data);
// An Error where it is no name of a setting, which can be told before any record is read.
Status check_setting_name(const std::string& setting);
// An Error that names the nearest where nothing was measured in the setting.
Status check_measured(const learn::ResourceData& data, const std::string& setting);

}  // namespace forerun
