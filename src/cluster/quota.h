// Quotas: how many GPUs the jobs of one user or group may take up at once.
//
//   user=8          every user        user:ann=16     of ann instead
//   group=64        every group       group:vision=0  nothing for that one: its jobs are refused
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/job.h"

namespace forerun::cluster {

struct Quota {
  enum class Of : uint8_t { user, group } of = Of::user;
  std::string name;  // empty: each that has none of its own
  int32_t gpus = 0;
};

// A list of them, each as written above.
Result<std::vector<Quota>> parse_quotas(const std::vector<std::string>& texts);

// What counts against a quota: the most that the job may hold, of an elastic one most_gpus.
int32_t quota_gpus(const Job& job);

// The quota of a job's user or group; nothing: it has none.
std::optional<int32_t> quota_of(const std::vector<Quota>& quotas, Quota::Of of, const Workload& workload,
                                const Job& job);

// An Error where a quota is of nobody, or where a job is larger than its quota and could never run.
Status check_quotas(const std::vector<Quota>& quotas, const Workload& workload);

}  // namespace forerun::cluster
