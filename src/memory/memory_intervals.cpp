#include "memory/memory_intervals.h"

#include <algorithm>
#include <cmath>

#include "base/json_file.h"
#include "base/json_writer.h"
#include "base/statistics.h"

namespace forerun {
namespace {

constexpr const char* kMemoryIntervalsFormat = "memory-intervals/1";

}  // namespace

Result<MemoryIntervals> load_memory_intervals(const std::filesystem::path& path) {
  Result<JsonObject> file = JsonObject::read(path);
  if (!file.ok()) return file.error();
  const std::string format = file->text("format");
  if (format != kMemoryIntervalsFormat)
    file->fail("format", "unknown format \"" + format + "\"", std::string("known is ") + kMemoryIntervalsFormat);
  MemoryIntervals intervals;
  const auto range = [&](const std::string& field) {
    JsonObject object = file->object(field);
    const RatioRange read{object.number("low"), object.number("high")};
    if (file->status().ok() && (read.low > 1 || read.high < 1)) object.fail("low", "1 must lie between low and high");
    return read;
  };
  intervals.requested = range("requested");
  intervals.allocated = range("allocated");
  intervals.reserved = range("reserved");
  intervals.driver = range("driver");
  intervals.runs = file->integer("runs");
  if (!file->status().ok()) return file->status().error();
  return intervals;
}

RatioRange ratio_range(std::vector<double> ratios) {
  if (ratios.empty()) return {};
  return {std::min(1.0, quantile_in_place(ratios, 0.1)), std::max(1.0, quantile_in_place(ratios, 0.9))};
}

std::string to_json(const MemoryIntervals& intervals, const std::string& made_from) {
  const auto rounded = [](double value) { return std::round(value * 1e6) / 1e6; };
  JsonWriter json(2);
  const auto range = [&](std::string_view name, const RatioRange& r) {
    json.key(name).begin_object().field("low", rounded(r.low)).field("high", rounded(r.high)).end_object();
  };
  json.begin_object().field("format", kMemoryIntervalsFormat).field("made_from", made_from);
  json.field("runs", intervals.runs);
  range("requested", intervals.requested);
  range("allocated", intervals.allocated);
  range("reserved", intervals.reserved);
  range("driver", intervals.driver);
  return json.end_object().take() + "\n";
}

}  // namespace forerun
