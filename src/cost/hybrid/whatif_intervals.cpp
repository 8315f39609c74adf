#include "cost/hybrid/whatif_intervals.h"

#include "base/json_file.h"

namespace forerun {

Result<WhatIfIntervals> load_whatif_intervals(const std::filesystem::path& path) {
  Result<JsonObject> file = JsonObject::read(path);
  if (!file.ok()) return file.error();
  const std::string format = file->text("format");
  if (format != "whatif-intervals/1") {
    file->fail("format", "unknown format \"" + format + "\"", "known is whatif-intervals/1");
  }
  file->text("origin");  // numbers that nobody can tell the origin of are none
  const auto range = [&](const std::string& field) {
    JsonObject object = file->object(field);
    const RatioInterval read{object.number("low"), object.number("high")};
    if (file->status().ok() && (read.low > 1 || read.high < 1)) object.fail("low", "1 must lie between low and high");
    return read;
  };
  const WhatIfIntervals intervals{range("gpu_bound"), range("host_bound"), range("elsewhere"), file->number("noise")};
  if (file->status().ok() && intervals.noise >= 1) file->fail("noise", "must be a share below 1");
  if (!file->status().ok()) return file->status().error();
  return intervals;
}

}  // namespace forerun
