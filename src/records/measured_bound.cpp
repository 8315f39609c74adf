#include "records/measured_bound.h"

#include <algorithm>

#include "timeline/host_gpu_timeline.h"

namespace forerun {
namespace {

constexpr double kNearLimit = 0.9;

}  // namespace

bool is_timed(const RunRecord& record) {
  return record.measured && record.measured->status == RunStatus::ok && record.measured->pipelined_median_ms > 0;
}

std::string_view name_of(MeasuredBound bound) {
  switch (bound) {
    case MeasuredBound::gpu: return "gpu";
    case MeasuredBound::host: return "host";
    case MeasuredBound::unknown: break;
  }
  return "";
}

MeasuredBound measured_bound(const RunRecord& record) {
  if (!is_timed(record)) return MeasuredBound::unknown;
  const double share = record.measured->gpu_busy_us / 1e3 / record.measured->pipelined_median_ms;
  return share > kGpuBoundShare ? MeasuredBound::gpu : MeasuredBound::host;
}

std::string_view status_text(const RunRecord& record) {
  return record.measured ? name_of(record.measured->status) : "captured";
}

bool near_memory_limit(const RunRecord& record) {
  if (!record.measured || record.measured->status != RunStatus::ok) return false;
  const Measurement& m = *record.measured;
  // What the driver showed at the end, or held at the peak: a retry in between may have given memory back.
  const int64_t used = std::max(m.device_used.value, m.peak_reserved.value);
  return m.device_total.value > 0 &&
         static_cast<double>(used) >= kNearLimit * static_cast<double>(m.device_total.value);
}

}  // namespace forerun
