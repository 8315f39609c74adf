#include "lab/dataset/other_gpus/other_gpu_predictor.h"

#include <algorithm>
#include <map>

namespace forerun::learn {

std::vector<bool> gpus_used(const TimedWorkTable& table, const std::vector<std::string>& without) {
  std::vector<bool> used;
  for (const Device& device : table.devices) {
    used.push_back(std::find(without.begin(), without.end(), device.name) == without.end());
  }
  return used;
}

std::vector<const TimedWork*> evenly_chosen(const TimedWorkTable& table, const std::vector<bool>& used, size_t most) {
  std::map<std::pair<WorkKind, size_t>, std::vector<const TimedWork*>> groups;
  for (const TimedWork& row : table.rows) {
    if (used[row.gpu]) groups[{row.work.kind, row.gpu}].push_back(&row);
  }
  std::vector<const TimedWork*> chosen;
  for (const auto& [key, rows] : groups) {
    const size_t kept = std::min(most, rows.size());
    for (size_t i = 0; i < kept; ++i) chosen.push_back(rows[i * rows.size() / kept]);
  }
  return chosen;
}

Device without_tf32(Device device) {
  device.peak.tf32_tensor = 0;
  return device;
}

}  // namespace forerun::learn
