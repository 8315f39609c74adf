// Plays a workload on a cluster under one or several policies: `forerun schedule`.
#pragma once

#include <functional>

#include "api/policy_outcome.h"
#include "cluster/policies.h"
#include "cluster/schedule_predictor.h"
#include "cluster/simulator.h"
#include "cluster/sources/loaded_jobs.h"
#include "cluster/synthetic.h"

namespace forerun {

struct ScheduleReport {
  std::string source;  // the file, or what was made up
  std::string gpus;    // as the user wrote them
  std::string predictor;
  std::string predictor_source;  // where what it says comes from; empty: the name says it
  int64_t jobs = 0;
  int64_t filtered = 0;
  int64_t passed_over = 0;
  std::array<int64_t, cluster::kFaults> faults{};
  std::vector<std::string> real, made;
  std::vector<std::string> unused;  // columns of the file that mean nothing here
  std::vector<PolicyOutcome> outcomes;
};

// Beside those of cluster/sources: jobs made of measured runs (api/schedule_records.h).
inline constexpr const char* kRecordsFormat = "records";

struct ScheduleRequest {
  std::string file;  // empty: synthetic
  std::string format = "csv";
  std::optional<cluster::SyntheticOptions> synthetic;
  std::string gpus;            // as parse_cluster takes them
  int32_t gpus_per_node = 0;   // 0: counted without topology
  int32_t nodes_per_rack = 0;  // 0: one rack
  std::vector<cluster::PolicySpec> policies;
  NetworkOptions network;        // between nodes, where gangs are known by what they say to each other
  cluster::Predictor predictor;  // perfect knowledge where none is named
  int64_t repeat = 1;            // seeds: seed, seed + 1 and so on
  uint64_t seed = 1;
  size_t threads = 1;  // simulations at once
  bool keep_schedules = false;
  cluster::LoadOptions load;  // its cluster is filled in here
  cluster::SimulationOptions simulation;
  std::function<void(size_t predicted, size_t runs)>
      predicting;  // told now and then, while measured runs are predicted
};

struct ScheduleAnswer {
  ScheduleReport report;
  cluster::Workload workload;
  cluster::Cluster cluster;
};

Result<ScheduleAnswer> schedule(const ScheduleRequest& request);

}  // namespace forerun
