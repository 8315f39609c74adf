#include "records/data_noise.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <unordered_map>

#include "records/data_configuration.h"
#include "records/measured_bound.h"

namespace forerun {
namespace {

constexpr std::array kNoiseFigures = {NoiseFigure::iteration, NoiseFigure::gpu_busy, NoiseFigure::peak_requested,
                                      NoiseFigure::peak_allocated, NoiseFigure::peak_reserved};

double value_of(NoiseFigure figure, const Measurement& measured) {
  switch (figure) {
    case NoiseFigure::iteration: return measured.pipelined_median_ms;
    case NoiseFigure::gpu_busy: return measured.gpu_busy_us;
    case NoiseFigure::peak_requested: return static_cast<double>(measured.peak_requested.value);
    case NoiseFigure::peak_allocated: return static_cast<double>(measured.peak_allocated.value);
    case NoiseFigure::peak_reserved: return static_cast<double>(measured.peak_reserved.value);
  }
  return 0;
}

struct First {
  Measurement measured;
  MeasuredBound bound;
};

void compare(const First& first, const Measurement& again, DataNoise& noise) {
  for (const NoiseFigure figure : kNoiseFigures) {
    const double a = value_of(figure, first.measured);
    const double b = value_of(figure, again);
    if (a <= 0 || b <= 0) continue;
    noise.differences[{first.bound, figure}].push_back(std::abs(a - b) / ((a + b) / 2));
  }
}

}  // namespace

Result<DataNoise> noise_of_data(const std::vector<std::string>& files,
                                const std::function<void(const DataProblem&)>& problem, const WorkControl& control) {
  std::unordered_map<std::string, First> firsts;
  DataNoise noise;
  const auto take = [&](const RunRecord& record, const DataPlace& /*place*/) {
    const std::string key = configuration_of(record.run);
    if (key.empty() || !record.measured) return;
    const Measurement& measured = *record.measured;
    const auto [first, is_new] = firsts.try_emplace(key, First{measured, measured_bound(record)});
    if (is_new) return;
    ++noise.repeats;
    if (first->second.measured.status != measured.status) {
      ++noise.other_status;
    } else if (measured.status == RunStatus::ok) {
      compare(first->second, measured, noise);
    }
  };
  const Status status =
      scan_files(files, Fields::description, {.run = take, .sample = {}, .problem = problem}, control);
  if (!status.ok()) return status.error();
  noise.configurations = static_cast<int64_t>(firsts.size());
  return noise;
}

std::string_view name_of(NoiseFigure figure) {
  switch (figure) {
    case NoiseFigure::iteration: return "iteration time";
    case NoiseFigure::gpu_busy: return "GPU busy time";
    case NoiseFigure::peak_requested: return "peak requested";
    case NoiseFigure::peak_allocated: return "peak allocated";
    case NoiseFigure::peak_reserved: break;
  }
  return "peak reserved";
}

}  // namespace forerun
