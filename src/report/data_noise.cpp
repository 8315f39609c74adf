#include "report/data_noise.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/statistics.h"

#include "base/json_writer.h"
#include "report/table.h"

namespace forerun {
namespace {

struct NoiseSpread {
  double mean, median, p90, largest;
};

NoiseSpread noise_spread_of(std::vector<double> differences) {
  std::sort(differences.begin(), differences.end());
  return {mean(differences), sorted_quantile_nearest(differences, 0.5), sorted_quantile_nearest(differences, 0.9),
          differences.back()};
}

}  // namespace

std::string to_text(const DataNoise& noise) {
  if (noise.differences.empty()) return "no configuration was measured twice: there is nothing to compare\n";
  Table table({"bound by", "figure", "repeats", "mean", "median", "p90", "largest"});
  table.align_left(1);
  for (const auto& [key, differences] : noise.differences) {
    const NoiseSpread s = noise_spread_of(differences);
    table.add({std::string(name_of(key.first)), std::string(name_of(key.second)),
               grouped(static_cast<int64_t>(differences.size())), percent(s.mean, 2), percent(s.median, 2),
               percent(s.p90, 2), percent(s.largest, 2)});
  }
  return fmt::format(
      "{} configurations, {} repeats; {} of them fitted once and ran out of memory once\n\n{}"
      "  |a - b| / mean(a, b) of each repeat and the first measurement of its configuration\n",
      grouped(noise.configurations), grouped(noise.repeats),
      noise.other_status == 0 ? "none" : grouped(noise.other_status), table.text());
}

std::string to_json(const DataNoise& noise) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.data.noise/1")
      .field("configurations", noise.configurations)
      .field("repeats", noise.repeats)
      .field("other_status", noise.other_status)
      .key("differences")
      .begin_array();
  for (const auto& [key, differences] : noise.differences) {
    const NoiseSpread s = noise_spread_of(differences);
    json.begin_object()
        .field("bound", name_of(key.first))
        .field("figure", name_of(key.second))
        .field("repeats", differences.size())
        .field("mean", s.mean)
        .field("median", s.median)
        .field("p90", s.p90)
        .field("largest", s.largest)
        .end_object();
  }
  return json.end_array().end_object().take();
}

}  // namespace forerun
