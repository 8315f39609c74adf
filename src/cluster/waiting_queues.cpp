#include "cluster/waiting_queues.h"

namespace forerun::cluster {

GangClass GangClass::of(const ClusterView& view, JobIndex job) {
  GangClass gang{view.job(job).gpus, 0};
  for (TypeIndex type = 0; type < std::min<size_t>(view.types(), 64); ++type) {
    if (view.usable(job, type)) gang.types |= uint64_t{1} << type;
  }
  return gang;
}

bool GangClass::fits(const std::vector<int32_t>& free) const {
  for (TypeIndex type = 0; type < free.size(); ++type) {
    if (gpus <= free[type] && usable(type)) return true;
  }
  return false;
}

void SkipQueue::add(const ClusterView& view, const Waiting& waiting) {
  const GangClass gang = GangClass::of(view, waiting.job);
  auto place = std::lower_bound(classes_.begin(), classes_.end(), gang,
                                [](const Class& a, const GangClass& b) { return a.gang < b; });
  if (place == classes_.end() || place->gang != gang) place = classes_.insert(place, {gang, {}});
  place->queue.add(waiting);
  ++size_;
}

std::optional<Waiting> SkipQueue::take_first_fitting(const ClusterView& view) {
  if (size_ == 0) return std::nullopt;
  int32_t most_free = 0;
  for (TypeIndex type = 0; type < view.types(); ++type) most_free = std::max(most_free, view.free(type));
  Class* best = nullptr;
  for (Class& candidate : classes_) {
    if (candidate.gang.gpus > most_free) break;
    if (candidate.queue.empty() || !candidate.gang.fits(view.all_free())) continue;
    if (best == nullptr || candidate.queue.first() < best->queue.first()) best = &candidate;
  }
  if (best == nullptr) return std::nullopt;
  const Waiting first = best->queue.first();
  best->queue.pop();
  --size_;
  return first;
}

}  // namespace forerun::cluster
