#include "cost/collective/link_efficiency.h"

#include "base/data_dir.h"
#include "base/json_file.h"

namespace forerun {
namespace {

Link reached_link(Link line, const LinkEfficiency& efficiency) {
  line.bandwidth *= efficiency.share;
  if (efficiency.step_us > 0) line.latency = nanoseconds_from_us(efficiency.step_us);
  return line;
}

LinkEfficiency read_link_efficiency(JsonObject object) {
  return {object.number("call_us", Sign::not_negative), object.number("step_us", Sign::not_negative),
          object.number("share")};
}

}  // namespace

Topology reached(const Topology& line, const CollectiveEfficiency& efficiency) {
  Topology topology = line;
  topology.within = reached_link(line.within, efficiency.within);
  topology.between = reached_link(line.between, efficiency.between);
  return topology;
}

Nanoseconds call_of(const Topology& topology, const CollectiveEfficiency& efficiency) {
  if (ranks_of(topology) < 2) return {};
  return nanoseconds_from_us(topology.nodes > 1 ? efficiency.between.call_us : efficiency.within.call_us);
}

CollectiveEfficiency read_collective_efficiency(JsonObject& file) {
  return {read_link_efficiency(file.object("within")), read_link_efficiency(file.object("between"))};
}

Result<CollectiveEfficiency> usual_collective_efficiency() {
  const auto data = data_dir();
  if (!data) return data.error();
  auto file = JsonObject::read(*data / kCollectiveEfficiencyFile);
  if (!file) return file.error();
  const CollectiveEfficiency efficiency = read_collective_efficiency(*file);
  if (const Status status = file->status(); !status) return status.error();
  return efficiency;
}

}  // namespace forerun
