// Figures of a schedule by user, by group or by size of jobs: who waited, and how long.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/schedule_result.h"

namespace forerun::cluster {

enum class BreakdownBy : uint8_t {
  user,
  group,  // the job's virtual cluster or partition
  size,   // its stated GPUs: 1, 2, 3-4, 5-8 and so on
};

// "user", "group", "size"; an unknown one is answered with these.
Result<BreakdownBy> parse_breakdown(const std::string& text);
const char* name_of(BreakdownBy by);

// Seconds, over the jobs that finished; counts are numbers too, as they may be means over several runs.
struct BreakdownRow {
  std::string name;  // empty: jobs that state none
  double jobs = 0;
  double unfinished = 0;
  double mean_jct = 0, median_jct = 0, p95_jct = 0;
  double mean_wait = 0, p95_wait = 0;
  double mean_slowdown = 0;
};

// Sizes ascend; users and groups stand in the order in which the workload first names them, those without one last.
std::vector<BreakdownRow> breakdown_of(const Schedule& schedule, const Workload& workload, BreakdownBy by);

}  // namespace forerun::cluster
