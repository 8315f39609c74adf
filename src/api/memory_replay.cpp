#include "api/memory_replay.h"

namespace forerun {

Status replay_memory(const std::vector<std::string>& files, const AllocatorSettings& settings,
                     const MemoryReplayHandlers& handlers, const WorkControl& control) {
  const auto replay = [&](const RunRecord& record, const DataPlace& /*place*/) {
    if (!record.allocator || !record.measured || record.measured->peak_reserved.value == 0) return;
    MemoryReplayRow row{.id = record.run.id, .family = record.run.family};
    row.replay = replay_trace(*record.allocator, settings, record.measured->base_allocated.value);
    const AllocatorFigures& figures = row.replay.figures;
    row.requested = {Bytes(figures.requested.peak), record.measured->peak_requested};
    row.allocated = {Bytes(figures.allocated.peak), record.measured->peak_allocated};
    row.reserved = {Bytes(figures.reserved.peak), record.measured->peak_reserved};
    handlers.row(row);
  };
  return scan_files(files, Fields::everything, {.run = replay, .sample = {}, .problem = handlers.problem}, control);
}

double PeakPair::error() const {
  if (exact()) return 0;
  return std::abs(static_cast<double>(simulated.value - measured.value)) /
         static_cast<double>(std::max<int64_t>(measured.value, 1));
}

}  // namespace forerun
