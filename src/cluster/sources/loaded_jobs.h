// What every job source has in common: rows go into a JobCollector, which checks and filters them, and come out as a
// Workload in order of arrival.
//
// A row at fault is an Error with file and line; with `lenient` it is counted, by kind of fault, and left out. Jobs larger
// than the cluster and GPU types it does not have are faults of the row that asks for them.
#pragma once

#include <array>
#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/work_control.h"
#include "cluster/machine.h"

namespace forerun::cluster {

// Why a row was left out.
enum class Fault : uint8_t {
  malformed,
  negative_time,
  too_large,
  duplicate,
  out_of_order,
  unknown_gpu_type,
  no_duration
};
inline constexpr size_t kFaults = 7;
const char* name_of(Fault fault);

// A training step whose time is asked for: of a job that names a model.
struct StepQuestion {
  Configuration configuration;
  std::string gpu_type;
  int32_t gpus = 1;  // of its gang, on as few nodes as possible
  friend auto operator<=>(const StepQuestion&, const StepQuestion&) = default;
};
struct StepAnswer {
  Time step;        // kNever: it does not fit in the GPU's memory
  Bytes gradients;  // that the gang exchanges in a step
};
using StepTimes = std::function<Result<StepAnswer>(const StepQuestion&)>;

struct LoadOptions {
  const Cluster* cluster = nullptr;  // rows are held against it, and durations put in the order of its pools
  bool lenient = false;
  std::optional<Time> from, to;  // keeps jobs that arrive in [from, to), on the source's own clock
  std::optional<int32_t> most_gpus;
  std::optional<size_t> first;  // keeps that many, in order of arrival
  std::string member;           // of an archive
  std::string companion;        // a second file: gavel's throughputs, pollux' or titan's step times
  StepTimes step_times;         // for jobs that name a model; empty: they are refused
  Work* work = nullptr;         // counts rows, and may end the reading
};

struct LoadedJobs {
  Workload workload;
  std::array<int64_t, kFaults> faults{};  // rows left out, by Fault
  int64_t passed_over = 0;                // rows that are no GPU jobs (CPU pods, job steps): no fault
  int64_t filtered = 0;                   // rows that the options leave out
  std::vector<std::string> real;          // columns taken as measured by the source
  std::vector<std::string> made;          // columns drawn at random, derived or assumed, with how
  std::vector<std::string> unused;        // columns that nothing is known to mean here
  [[nodiscard]] int64_t left_out() const;
};

// A row as a source reads it.
struct JobRow {
  std::string id;
  Job job;                      // arrival on the source's own clock
  std::vector<Time> durations;  // by GPU type of the source, or one
  std::string user, virtual_cluster, kind;
  std::optional<Configuration> configuration;
  double iterations = 0;
  bool measured = false;           // the durations are not predicted from the configuration
  Bytes gradients;                 // exchanged in a step; 0: not known
  Time limit = kNever;             // that its user stated; kNever: none
  std::vector<std::string> after;  // ids of jobs or arrays that must have ended before it
};

// The jobs of an array: the row's once for each index, called ID_INDEX.
struct ArrayRow {
  std::vector<int64_t> indices;
  int32_t most_at_once = 0;  // 0: all
};

// How jobs that arrive at the same time are ordered.
enum class TieOrder : uint8_t {
  source,     // as in the file
  introsort,  // as an unstable introsort by arrival leaves them (sources/introsort_order.h)
};

class JobCollector {
 public:
  JobCollector(std::string file, const LoadOptions& options, std::vector<std::string> gpu_types);

  // Takes the row, counts it, or gives the Error that ends loading.
  Status add(JobRow row, int64_t line);
  // The same of all jobs of an array.
  Status add_array(const JobRow& row, const ArrayRow& array, int64_t line);
  Status reject(Fault fault, int64_t line, const std::string& what, const std::string& remedy);
  void pass_over() { ++loaded_.passed_over; }
  void require_order() { must_be_sorted_ = true; }  // rows that arrive before the one above are faults
  void allow_duplicates() { duplicates_ = true; }
  void expect_dependencies() { dependencies_ = true; }  // ids are kept for rows that run after them
  [[nodiscard]] const LoadOptions& options() const { return options_; }

  Result<LoadedJobs> finish(TieOrder ties);

 private:
  Status check(const JobRow& row, int64_t line);
  Status check_size(const JobRow& row, int64_t line);
  [[nodiscard]] bool wanted(const JobRow& row) const;
  void keep_details(const JobRow& row);
  Status reject_order(const std::string& job, const std::string& before, int64_t line);
  Result<std::vector<JobIndex>> those_before(const JobRow& row, int64_t line);
  int32_t intern(const std::string& name, std::vector<std::string>& names,
                 std::unordered_map<std::string, int32_t>& index);

  std::string file_;
  LoadOptions options_;
  LoadedJobs loaded_;
  std::vector<std::optional<TypeIndex>> column_;  // by pool of the cluster: the source's type
  bool must_be_sorted_ = false;
  bool duplicates_ = false;
  bool dependencies_ = false;
  bool rejected_ = false;                                          // the row in hand
  int32_t array_ = -1;                                             // of the row in hand
  int64_t dropped_ = 0;                                            // dependencies on jobs that the options leave out
  std::unordered_map<std::string, std::vector<JobIndex>> called_;  // jobs by id, and those of arrays
  Time latest_{std::numeric_limits<int64_t>::min()};
  std::unordered_set<std::string> seen_;
  std::unordered_map<std::string, int32_t> users_, virtual_clusters_, kinds_;
  std::map<Configuration, int32_t> configurations_;
};

}  // namespace forerun::cluster
