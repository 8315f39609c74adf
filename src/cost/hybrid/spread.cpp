#include "cost/hybrid/spread.h"

#include <cmath>

#include "base/json_file.h"

namespace forerun {

Result<Spread> load_spread(const std::filesystem::path& path) {
  Result<JsonObject> file = JsonObject::read(path);
  if (!file.ok()) return file.error();
  const std::string format = file->text("format");
  if (format != "spread/1") file->fail("format", "unknown format \"" + format + "\"", "known is spread/1");
  Spread spread;
  const auto range = [&](const std::string& field) {
    JsonObject object = file->object(field);
    const SpreadRange read{object.number("low"), object.number("high")};
    if (file->status().ok() && (read.low > 1 || read.high < 1)) object.fail("low", "1 must lie between low and high");
    return read;
  };
  spread.gpu_bound = range("gpu_bound");
  spread.host_bound = range("host_bound");
  spread.other_gpu = file->number("other_gpu");
  if (!file->status().ok()) return file->status().error();
  return spread;
}

SpreadRange spread_of(const Spread& spread, bool host_bound, bool measured_gpu) {
  const SpreadRange& range = host_bound ? spread.host_bound : spread.gpu_bound;
  const double power = measured_gpu ? 1 : spread.other_gpu;
  return {std::pow(range.low, power), std::pow(range.high, power)};
}

}  // namespace forerun
