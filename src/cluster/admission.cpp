#include "cluster/admission.h"

#include <algorithm>
#include <map>
#include <utility>

namespace forerun::cluster {

Admission::Admission(const Workload& workload, const std::vector<Quota>& quotas) : workload_(workload) {
  active_ = !quotas.empty() || !workload.after.empty() || !workload.arrays.empty();
  if (!active_) return;
  const size_t jobs = workload.jobs.size();
  to_wait_for_.assign(jobs, 1);
  dependants_.resize(workload.after.empty() ? 0 : jobs);
  for (JobIndex job = 0; job < workload.after.size(); ++job) {
    to_wait_for_[job] += static_cast<int32_t>(workload.after[job].size());
    for (const JobIndex before : workload.after[job]) dependants_[before].push_back(job);
  }
  shares_.resize(jobs);
  add_quota_lanes(quotas, Quota::Of::user);
  add_quota_lanes(quotas, Quota::Of::group);
  add_array_lanes();
}

void Admission::add_quota_lanes(const std::vector<Quota>& quotas, Quota::Of of) {
  std::map<int32_t, size_t> lane_of;  // by user or group
  for (JobIndex index = 0; index < workload_.jobs.size(); ++index) {
    const Job& job = workload_.jobs[index];
    const auto most = quota_of(quotas, of, workload_, job);
    if (!most) continue;
    const int32_t whose = of == Quota::Of::user ? job.user : job.virtual_cluster;
    const auto [place, is_new] = lane_of.try_emplace(whose, lanes_.size());
    if (is_new) lanes_.push_back({*most});
    shares_[index].push_back({place->second, quota_gpus(job)});
  }
}

void Admission::add_array_lanes() {
  if (workload_.arrays.empty()) return;
  std::map<int32_t, size_t> lane_of;
  for (JobIndex job = 0; job < workload_.array_of.size(); ++job) {
    const int32_t array = workload_.array_of[job];
    if (array < 0 || workload_.arrays[static_cast<size_t>(array)].most_at_once == 0) continue;
    const auto [place, is_new] = lane_of.try_emplace(array, lanes_.size());
    if (is_new) lanes_.push_back({workload_.arrays[static_cast<size_t>(array)].most_at_once});
    shares_[job].push_back({place->second, 1});
  }
}

void Admission::submitted(JobIndex job) {
  if (--to_wait_for_[job] == 0) consider(job);
}

void Admission::finished(JobIndex job) {
  for (const Share& share : shares_[job]) {
    lanes_[share.lane].used -= share.weight;
    changed_.push_back(share.lane);
  }
  if (dependants_.empty()) return;
  for (const JobIndex next : dependants_[job]) {
    if (--to_wait_for_[next] == 0) consider(next);
  }
}

void Admission::consider(JobIndex job) {
  for (const Share& share : shares_[job]) {
    lanes_[share.lane].held_back.insert(job);
    changed_.push_back(share.lane);
  }
  if (shares_[job].empty()) free_.push_back(job);
}

bool Admission::admissible(JobIndex job) const {
  return std::all_of(shares_[job].begin(), shares_[job].end(), [&](const Share& share) {
    const Lane& lane = lanes_[share.lane];
    return *lane.held_back.begin() == job && lane.used + share.weight <= lane.most;
  });
}

// Only the first of a lane may be admitted. Two jobs that are both first share no lane, so the order in which lanes are
// looked at makes no difference.
std::vector<JobIndex> Admission::admit() {
  std::vector<JobIndex> admitted = std::exchange(free_, {});
  while (!changed_.empty()) {
    const Lane& lane = lanes_[changed_.back()];
    const JobIndex first = lane.held_back.empty() ? kNoJob : *lane.held_back.begin();
    if (first == kNoJob || !admissible(first)) {
      changed_.pop_back();
      continue;
    }
    for (const Share& share : shares_[first]) {
      lanes_[share.lane].used += share.weight;
      lanes_[share.lane].held_back.erase(first);
      changed_.push_back(share.lane);
    }
    admitted.push_back(first);
  }
  std::sort(admitted.begin(), admitted.end());
  return admitted;
}

}  // namespace forerun::cluster
