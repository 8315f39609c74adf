#include "lab/calibrate/calibrate_host.h"

#include <algorithm>
#include <numeric>

#include "base/data_dir.h"
#include "timeline/host_gpu_timeline.h"

namespace forerun {

HostSample host_sample(const RunRecord& record) {
  const Measurement& m = *record.measured;
  HostSample sample;
  sample.family = record.run.family;
  sample.counts = host_counts(record.run.graph, m.op_kernels);
  sample.calibration = record.run.environment.calibration;
  sample.iteration_us = m.pipelined_median_ms * 1e3;
  // Kernels that run side by side keep the GPU busy for less than their durations' sum.
  const double span = std::accumulate(m.op_span_us.begin(), m.op_span_us.end(), 0.0);
  sample.gpu_us = span > 0 ? std::min(m.gpu_busy_us, span) : m.gpu_busy_us;
  return sample;
}

Result<std::vector<HostSample>> load_host_samples(const std::vector<std::string>& files, const TrainingPart& part,
                                                  const std::function<void(const DataProblem&)>& problem) {
  std::vector<HostSample> samples;
  const auto take = [&](const RunRecord& record, const DataPlace& /*place*/) {
    if (!part.contains(record.run) || !record.has_graph || !record.measured) return;
    if (record.measured->status != RunStatus::ok || record.measured->pipelined_median_ms <= 0) return;
    if (record.measured->gpu_busy_us >= kGpuBoundShare * 1e3 * record.measured->pipelined_median_ms) return;
    samples.push_back(host_sample(record));
  };
  const Status status = scan_files(files, Fields::everything, {.run = take, .sample = {}, .problem = problem});
  if (!status.ok()) return status.error();
  return samples;
}

Result<HostOutcome> calibrate_host(const HostRequest& request) {
  const Result<std::filesystem::path> folder = data_dir();
  if (!folder) return folder.error();
  const auto part = TrainingPart::beside(request.files, request.without);
  if (!part) return part.error();
  const auto samples = load_host_samples(request.files, *part, request.problem);
  if (!samples) return samples.error();
  Result<HostRegression> fit = calibrate_host_costs(*samples, request.options);
  if (!fit) return fit.error();
  HostOutcome outcome{.file = request.out.empty() ? (*folder / kHostFile).string() : request.out,
                      .fit = std::move(*fit)};
  auto held_out = hold_out_families(*samples, request.options);
  if (!held_out) return held_out.error();
  outcome.held_out = std::move(*held_out);
  for (const HeldOutFamily& row : outcome.held_out) {
    outcome.held_out_error += row.error * static_cast<double>(row.samples) / static_cast<double>(samples->size());
  }
  if (const Status saved = save_host_constants(outcome.fit.constants, outcome.file); !saved.ok()) return saved.error();
  return outcome;
}

}  // namespace forerun
