// Jobs of a cluster: what a user states when submitting one (Job), and how long it runs (Durations).
//
// The two stand apart on purpose. A scheduling policy sees jobs and predicted durations; the simulator alone has the
// true ones (Workload::truth). Times are whole nanoseconds, counted from the first arrival of the workload.
// A job is a gang: all of its GPUs are of one type, and it holds them all or none.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/options_text.h"
#include "base/quantity.h"
#include "cluster/communication.h"
#include "cluster/packing.h"
#include "cluster/speed_table.h"
#include "graph/training_run.h"

namespace forerun::cluster {

using Time = Nanoseconds;
inline constexpr Time kNever{std::numeric_limits<int64_t>::max()};
inline constexpr Time kSecond{1'000'000'000};
constexpr double seconds(Time t) { return static_cast<double>(t.value) / 1e9; }
// The end of time, if it does not fit before: sums of long jobs on small clusters may exceed 292 years.
constexpr Time later(Time time, Time by) {
  return time.value > 0 && by.value >= kNever.value - time.value ? kNever : time + by;
}
Time time_from_seconds(double s);  // to the nearest nanosecond; what does not fit becomes kNever

using JobIndex = uint32_t;   // position in Workload::jobs, which is the order of arrival
using TypeIndex = uint32_t;  // position in Cluster::pools
inline constexpr JobIndex kNoJob = std::numeric_limits<JobIndex>::max();
inline constexpr TypeIndex kNoType = std::numeric_limits<TypeIndex>::max();

// What is known of a job when it is submitted.
struct Job {
  Time arrival;
  Time deadline = kNever;
  Bytes memory;                  // a GPU must have; 0: not stated
  int32_t gpus = 1;              // of its gang
  int32_t user = -1;             // index into Workload::users; -1: not stated
  int32_t virtual_cluster = -1;  // index into Workload::virtual_clusters
  int32_t kind = -1;             // index into Workload::kinds: what it trains
  int32_t priority = 0;          // larger goes first, in policies that look at it
  int32_t least_gpus = 0;        // an elastic job runs with least_gpus to most_gpus; 0 and 0: it is not elastic
  int32_t most_gpus = 0;
  [[nodiscard]] bool elastic() const { return most_gpus > 0; }
};

// How long each job runs with its whole gang, undisturbed, by GPU type. One column: alike on every type.
class Durations {
 public:
  Durations() = default;
  explicit Durations(size_t types) : types_(types) {}

  [[nodiscard]] size_t types() const { return types_; }
  [[nodiscard]] size_t jobs() const { return types_ == 0 ? 0 : times_.size() / types_; }
  // kNever: it cannot run on that type.
  [[nodiscard]] Time of(JobIndex job, TypeIndex type) const {
    return times_[types_ == 1 ? job : size_t{job} * types_ + type];
  }
  // The least over all types.
  [[nodiscard]] Time fastest(JobIndex job) const;

  void reserve(size_t jobs) { times_.reserve(jobs * types_); }
  void add(Time time) { times_.push_back(time); }  // of one job and type, type after type
  void set(JobIndex job, TypeIndex type, Time time) { times_[size_t{job} * types_ + type] = time; }

 private:
  size_t types_ = 1;
  std::vector<Time> times_;  // job after job
};

// What a job trains, as `forerun predict` takes it: enough to predict a step of it.
struct Configuration {
  std::string model;  // zoo name or file
  int64_t batch = 0;  // of one GPU; 0: the model's usual one
  TrainingSetup setup;
  bool default_optimizer = true;  // chosen by the model's input, in place of the setup's
  KeyValues settings;             // of the model's family
  std::string fault;   // why it cannot be predicted: a word of its row that means nothing here; empty: it can
  std::string record;  // id of a measured run in place of all that
  friend auto operator<=>(const Configuration&, const Configuration&) = default;
};

// That a job names one.
struct NamedConfiguration {
  int32_t index = -1;  // into Workload::configurations; -1: none
  double iterations = 0;
  bool measured = false;  // its true durations are not themselves predicted from it
};

// Jobs that were submitted as one.
struct JobArray {
  int32_t most_at_once = 0;  // of its jobs; 0: all
};

// Jobs in the order of arrival, with their true durations.
struct Workload {
  std::vector<Job> jobs;
  Durations truth;
  std::vector<std::string> gpu_types;  // the columns of `truth`; empty: one column, for every type
  std::vector<std::string> ids;        // by job; empty: jobs are called by their number
  std::vector<std::string> users;
  std::vector<std::string> virtual_clusters;
  std::vector<std::string> kinds;
  std::shared_ptr<const PackingModel> packing;  // of jobs that share a GPU; its types are columns of truth
  std::shared_ptr<const SpeedModel> speeds;     // of elastic and spread-out jobs; null: speed goes with GPUs
  std::shared_ptr<const CommunicationModel> communication;  // of gangs whose traffic is known; null: none is
  std::vector<GangTraffic> traffic;                         // by job; empty: not known of any
  std::vector<Configuration> configurations;                // each once
  std::vector<NamedConfiguration> named;                    // by job; empty: none names one
  std::vector<Time> limits;  // by job: what its user stated as the longest it may take, or kNever; empty: none did
  std::vector<std::vector<JobIndex>>
      after;  // by job: those that must have ended before, all of lower number; empty: none
  std::vector<JobArray> arrays;
  std::vector<int32_t> array_of;  // by job: its array or -1; empty: none is of one
  int64_t origin = 0;             // seconds since 1970-01-01 at time 0, where the source has dates; else 0

  [[nodiscard]] std::string name_of(JobIndex job) const;
};

}  // namespace forerun::cluster
