#include "report/prediction_series.h"

#include <algorithm>

#include "report/columns.h"

namespace forerun {

std::string to_json(const std::vector<PredictedOp>& rows) {
  JsonWriter json;
  json.begin_object().field("schema", "forerun.ops/1").key("columns").begin_object();
  column(json, "op", rows, [](const PredictedOp& row) { return row.name; });
  column(json, "phase", rows, [](const PredictedOp& row) { return row.phase; });
  column(json, "module", rows, [](const PredictedOp& row) { return row.module; });
  column(json, "gpu_us", rows, [](const PredictedOp& row) { return microseconds(row.gpu); });
  column(json, "kernels", rows, [](const PredictedOp& row) { return row.kernels; });
  column(json, "bound", rows, [](const PredictedOp& row) { return row.bound; });
  column(json, "measured", rows, [](const PredictedOp& row) { return row.measured; });
  column(json, "flops", rows, [](const PredictedOp& row) { return row.flops; });
  column(json, "bytes", rows, [](const PredictedOp& row) { return row.bytes.value; });
  return json.end_object().end_object().take();
}

std::string to_json(const MemoryTimeline& timeline, const Prediction& prediction) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.memory/1")
      .field("peak", timeline.peak)
      .field("peak_op", timeline.peak_op)
      .field("forward_from", timeline.phases[0])
      .field("backward_from", timeline.phases[1])
      .field("update_from", timeline.phases[2])
      .field("ops", timeline.phases[3])
      .field("device_memory", prediction.device_memory.value)
      .field("context", prediction.context.value)
      .key("columns")
      .begin_object();
  const auto& samples = timeline.samples;
  column(json, "at_op", samples, [](const MemorySample& sample) { return sample.at; });
  for (size_t use = 0; use < kUses; ++use) {
    std::string name(name_of(static_cast<Use>(use)));
    std::replace(name.begin(), name.end(), ' ', '_');
    column(json, name, samples, [&](const MemorySample& sample) { return sample.live[use]; });
  }
  column(json, "allocated", samples, [](const MemorySample& sample) { return sample.total(); });
  column(json, "reserved", samples, [](const MemorySample& sample) { return sample.reserved; });
  return json.end_object().end_object().take();
}

MemoryTimeline thinned(const MemoryTimeline& timeline, size_t most) {
  const size_t count = timeline.samples.size();
  if (count <= most) return timeline;
  MemoryTimeline few = timeline;
  few.samples.clear();
  const size_t stretch = (count + most - 1) / most;
  for (size_t from = 0; from < count; from += stretch) {
    const size_t to = std::min(from + stretch, count);
    size_t highest = from;
    for (size_t i = from; i < to; ++i) {
      if (timeline.samples[i].total() > timeline.samples[highest].total()) highest = i;
    }
    if (timeline.peak >= from && timeline.peak < to) {
      highest = timeline.peak;
      few.peak = few.samples.size();
    }
    few.samples.push_back(timeline.samples[highest]);
  }
  return few;
}

}  // namespace forerun
