#include "cost/hybrid/prediction_intervals.h"

#include <algorithm>
#include <cmath>

#include "base/json_file.h"
#include "base/json_writer.h"
#include "base/line_writer.h"
#include "base/statistics.h"

namespace forerun {
namespace {

constexpr double kOutside = 0.1;  // share of the measured times on either side of the range
constexpr int kVolta = 70;        // compute capability 7.0

}  // namespace

std::string_view name_of(GpuDistance distance) {
  switch (distance) {
    case GpuDistance::none: return "none";
    case GpuDistance::near: return "near";
    case GpuDistance::far: return "far";
    case GpuDistance::beyond: break;
  }
  return "beyond";
}

GpuDistance gpu_distance(const Device& device, const Device& measured, Precision precision) {
  if (device.name == measured.name) return GpuDistance::none;
  if (device.architecture.empty() || device.power_w <= 0) return GpuDistance::beyond;
  if (device.architecture == measured.architecture) return GpuDistance::near;
  const bool fp32 = precision == Precision::fp32 || (precision == Precision::tf32 && device.peak.tf32_tensor <= 0);
  if (device.measured == Measured::elsewhere && fp32) return GpuDistance::near;
  const bool known = device.compute_capability >= kVolta && device.compute_capability < measured.compute_capability;
  return known ? GpuDistance::far : GpuDistance::beyond;
}

Result<PredictionIntervals> load_prediction_intervals(const std::filesystem::path& path) {
  Result<JsonObject> file = JsonObject::read(path);
  if (!file.ok()) return file.error();
  const std::string format = file->text("format");
  if (format != "intervals/1") file->fail("format", "unknown format \"" + format + "\"", "known is intervals/1");
  const auto range = [&](const std::string& field) {
    JsonObject object = file->object(field);
    const RatioInterval read{object.number("low"), object.number("high")};
    if (file->status().ok() && (read.low > 1 || read.high < 1)) object.fail("low", "1 must lie between low and high");
    return read;
  };
  PredictionIntervals intervals{range("gpu_bound"), range("host_bound")};
  for (const GpuDistance distance : kOtherGpus) {
    intervals.other(distance) = range("other_gpu_" + std::string(name_of(distance)));
  }
  if (!file->status().ok()) return file->status().error();
  return intervals;
}

Status save_prediction_intervals(const PredictionIntervals& intervals, const std::filesystem::path& path) {
  JsonWriter json(2);
  const auto range = [&](std::string_view name, const RatioInterval& interval) {
    json.key(name).begin_object().field("low", interval.low).field("high", interval.high).end_object();
  };
  json.begin_object().field("format", "intervals/1");
  range("gpu_bound", intervals.gpu_bound);
  range("host_bound", intervals.host_bound);
  for (const GpuDistance distance : kOtherGpus) {
    range("other_gpu_" + std::string(name_of(distance)), intervals.other(distance));
  }
  json.end_object();
  Result<LineWriter> writer = LineWriter::create(path.string(), {.overwrite = true});
  if (!writer) return writer.error();
  if (Status written = writer->write(json.take()); !written.ok()) return written;
  return writer->finish();
}

RatioInterval interval_of(const PredictionIntervals& intervals, bool host_bound, GpuDistance distance) {
  RatioInterval range = host_bound ? intervals.host_bound : intervals.gpu_bound;
  for (const GpuDistance nearer : kOtherGpus) {  // what is farther has no narrower range
    if (nearer > distance) break;
    const RatioInterval& other = intervals.other(nearer);
    range = {std::min(range.low, other.low), std::max(range.high, other.high)};
  }
  return range;
}

RatioInterval range_of(std::vector<double> ratios) {
  if (ratios.empty()) return {};
  const auto at = [&](double share) { return std::round(100 * quantile_in_place(ratios, share)) / 100; };
  return {std::min(1.0, at(kOutside)), std::max(1.0, at(1 - kOutside))};
}

}  // namespace forerun
