#include "cost/calibrated/calibrated_intervals.h"

#include "base/json_file.h"
#include "base/json_writer.h"
#include "base/line_writer.h"

namespace forerun {

std::optional<RatioInterval> CalibratedIntervals::gpu_with(size_t readings) const {
  std::optional<RatioInterval> found;
  for (const OfReadings& entry : gpu) {
    if (entry.readings <= static_cast<int64_t>(readings)) found = entry.range;
  }
  return found;
}

Result<CalibratedIntervals> load_calibrated_intervals(const std::filesystem::path& path) {
  Result<JsonObject> file = JsonObject::read(path);
  if (!file.ok()) return file.error();
  const std::string format = file->text("format");
  if (format != "calibrated/1") file->fail("format", "unknown format \"" + format + "\"", "known is calibrated/1");
  const auto range = [&](JsonObject& object) {
    const RatioInterval read{object.number("low"), object.number("high")};
    if (file->status().ok() && (read.low > 1 || read.high < 1)) object.fail("low", "1 must lie between low and high");
    return read;
  };
  CalibratedIntervals intervals;
  for (JsonObject& entry : file->objects("gpu")) {
    intervals.gpu.push_back({entry.integer("readings"), range(entry)});
    const size_t count = intervals.gpu.size();
    if (count > 1 && intervals.gpu[count - 2].readings >= intervals.gpu[count - 1].readings) {
      entry.fail("readings", "must be more than those of the entry before");
    }
  }
  const auto host = [&](const char* field) -> std::optional<RatioInterval> {
    if (!file->has(field)) return std::nullopt;
    JsonObject object = file->object(field);
    return range(object);
  };
  intervals.calibrated_host = host("calibrated_host");
  intervals.default_host = host("default_host");
  if (!file->status().ok()) return file->status().error();
  return intervals;
}

Status save_calibrated_intervals(const CalibratedIntervals& intervals, const std::filesystem::path& path) {
  JsonWriter json(2);
  json.begin_object().field("format", "calibrated/1").key("gpu").begin_array();
  for (const CalibratedIntervals::OfReadings& entry : intervals.gpu) {
    json.begin_object().field("readings", entry.readings);
    json.field("low", entry.range.low).field("high", entry.range.high).end_object();
  }
  json.end_array();
  const auto host = [&](std::string_view name, const std::optional<RatioInterval>& range) {
    if (!range) return;
    json.key(name).begin_object().field("low", range->low).field("high", range->high).end_object();
  };
  host("calibrated_host", intervals.calibrated_host);
  host("default_host", intervals.default_host);
  json.end_object();
  Result<LineWriter> writer = LineWriter::create(path.string(), {.overwrite = true});
  if (!writer) return writer.error();
  if (Status written = writer->write(json.take()); !written.ok()) return written;
  return writer->finish();
}

}  // namespace forerun
