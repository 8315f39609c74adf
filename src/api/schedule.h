// Plays a workload on a cluster under one or several policies: `forerun schedule`.
#pragma once

#include <functional>

#include "api/policy_outcome.h"
#include "base/work_control.h"
#include "cluster/drawn_jobs.h"
#include "cluster/policies.h"
#include "cluster/schedule_predictor.h"
#include "cluster/simulator.h"
#include "cluster/sources/sources.h"
#include "cluster/synthetic.h"
#include "predict/machine_calibration.h"

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
  // Which machine.json the predicted times are calibrated by and what of it counted, a sentence for each kind of GPU; or that one
  // which was named did not count.
  std::vector<std::string> calibration;
  std::vector<PolicyOutcome> outcomes;
};

// Beside those of cluster/sources: jobs made of measured runs (api/schedule_records.h).
inline constexpr const char* kRecordsFormat = "records";

// What a file of jobs is.
struct JobFormat {
  const cluster::SourceEntry* source = &cluster::sources().front();  // csv; null: measured runs
  // Whether its jobs may say what they train.
  [[nodiscard]] bool describes_training() const { return source == nullptr || source->describes_training; }
};
// "csv", "philly", "records"; an unknown one is answered with the nearest ones.
Result<JobFormat> parse_job_format(const std::string& text);

// "2017-10-09", "2017-10-09T12:00:00", or seconds; `option` is named where the text is none of these.
Result<cluster::Time> parse_when(const std::string& text, const std::string& option);

struct ScheduleRequest {
  std::string file;  // empty: synthetic
  JobFormat format;  // of the file
  std::optional<cluster::SyntheticOptions> synthetic;
  std::optional<cluster::Cluster> cluster;  // its GPUs by type; nothing: as many as the synthetic jobs are made for
  int32_t gpus_per_node = 0;                // 0: counted without topology
  int32_t nodes_per_rack = 0;               // 0: one rack
  std::vector<cluster::PolicySpec> policies;
  // machine.json for what is predicted, as load_cost_models_for takes it.
  std::string machine = kNoMachine;
  NetworkOptions network;        // between nodes, where gangs are known by what they say to each other
  cluster::Predictor predictor;  // perfect knowledge where none is named
  IterationOracle oracle;        // of a learned predictor; without it such a one is refused
  int64_t repeat = 1;            // seeds: seed, seed + 1 and so on
  uint64_t seed = 1;
  size_t threads = 1;                        // simulations at once
  std::vector<cluster::BreakdownBy> by;      // also figures by these
  bool keep_schedules = false;               // PolicyOutcome::first, and what was predicted
  std::optional<cluster::DrawOptions> draw;  // what the jobs do not state and is to be drawn
  cluster::LoadOptions load;                 // its cluster is filled in here
  cluster::SimulationOptions simulation;
};

struct ScheduleAnswer {
  ScheduleReport report;
  cluster::Workload workload;
  cluster::Cluster cluster;
  cluster::Durations predicted;  // with the first seed; empty unless keep_schedules
};

// Which simulations a schedule is made of, by number: of each policy in turn one a seed, and a last one with true durations where
// others were predicted.
struct SimulationPlan {
  struct One {
    size_t policy = 0;
    int64_t run = 0;  // -1: with true durations
  };

  std::vector<std::string> policies;  // as the user wrote them
  int64_t runs = 1;                   // seeds
  bool compared = false;              // with true durations

  [[nodiscard]] size_t of_a_policy() const { return static_cast<size_t>(runs) + (compared ? 1 : 0); }
  [[nodiscard]] size_t size() const { return policies.size() * of_a_policy(); }
  [[nodiscard]] One operator[](size_t number) const;
};

// What one simulation adds to a report.
struct SimulatedRun {
  cluster::Metrics metrics;
  std::vector<Breakdown> breakdowns;
};

// What the simulations of a plan, all of them in its order, say of each policy.
std::vector<PolicyOutcome> outcomes_of(const SimulationPlan& plan, std::vector<SimulatedRun> runs);

// A schedule simulation by simulation, for those who share them among processes: the jobs are read, nothing is simulated yet.
// The request must outlive it. Progress is told of the reading alone.
class ScheduleCases {
 public:
  static Result<ScheduleCases> read(const ScheduleRequest& request, const WorkControl& control = {});

  [[nodiscard]] const SimulationPlan& plan() const { return plan_; }
  [[nodiscard]] const ScheduleReport& report() const { return report_; }  // without outcomes
  // From any thread. An Error where it does not come to its end.
  [[nodiscard]] Result<SimulatedRun> simulate(size_t number) const { return simulate_(number); }

 private:
  ScheduleCases() = default;
  SimulationPlan plan_;
  ScheduleReport report_;
  std::function<Result<SimulatedRun>(size_t)> simulate_;
};

// Stages of its progress: rows of jobs read, runs predicted where jobs name them, and jobs that have ended in any of the
// simulations.
Result<ScheduleAnswer> schedule(const ScheduleRequest& request, const WorkControl& control = {});

}  // namespace forerun
