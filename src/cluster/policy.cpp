#include "cluster/policy.h"

#include "cluster/scaling.h"

namespace forerun::cluster {

Time ClusterView::attained(JobIndex job) const {
  return is_running(job) ? held_[job] + (now_ - running(job).since) : held_[job];
}

double ClusterView::predicted_speed(JobIndex job, TypeIndex type, int32_t gpus) const {
  const Job& stated = jobs_[job];
  if (gpus == stated.gpus) return 1;
  if (speeds_ == nullptr) return static_cast<double>(gpus) / stated.gpus;
  return speeds_->speed({job, stated.kind, type, stated.gpus, gpus, 0});
}

std::optional<std::pair<double, double>> ClusterView::packed_speeds(JobIndex a, JobIndex b, TypeIndex type) const {
  const Job& one = jobs_[a];
  const Job& other = jobs_[b];
  const bool single = one.gpus == 1 && other.gpus == 1 && cluster_->pools[type].gpus_per_node == 0;
  if (packing_ == nullptr || !single || one.kind < 0 || other.kind < 0) return std::nullopt;
  const auto speeds = packing_->speeds(one.kind, other.kind, type);
  return speeds && speeds->first > 0 && speeds->second > 0 ? speeds : std::nullopt;
}

Time ClusterView::predicted_remaining(JobIndex job, TypeIndex type) const {
  Time done = progress_[job];
  if (is_running(job)) {
    const Running& run = running(job);
    done += useful_time(run, now_, *predicted_);
  }
  const Time whole = predicted_->of(job, type);
  if (predicted_->types() == 1) return std::max(whole - done, Time(0));
  if (whole == kNever) return kNever;
  const Time fastest = predicted_->fastest(job);
  return done >= fastest ? Time(0) : scaled(fastest - done, whole, fastest);
}

bool ClusterView::usable(JobIndex job, TypeIndex type) const {
  const GpuPool& pool = cluster_->pools[type];
  const Job& wanted = jobs_[job];
  return wanted.gpus <= pool.gpus && (pool.memory.value == 0 || wanted.memory <= pool.memory) &&
         predicted_->of(job, type) != kNever;
}

std::optional<TypeIndex> ClusterView::fastest_free(JobIndex job) const {
  if (types() == 1) return jobs_[job].gpus <= free_[0] ? std::optional<TypeIndex>(0) : std::nullopt;
  std::optional<TypeIndex> best;
  for (TypeIndex type = 0; type < types(); ++type) {
    if (!fits(job, type)) continue;
    if (!best || predicted(job, type) < predicted(job, *best)) best = type;
  }
  return best;
}

}  // namespace forerun::cluster
