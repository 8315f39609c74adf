#include "cluster/sources/slurm_gpus.h"

#include <algorithm>

#include "cluster/sources/cell_values.h"

namespace forerun::cluster {

std::optional<SlurmGpus> parse_slurm_gpus(std::string_view text) {
  SlurmGpus found;
  for (size_t begin = 0; begin < text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    std::string_view part = text.substr(begin, comma - begin);
    begin = comma + 1;
    if (part.starts_with("gres/")) part.remove_prefix(5);
    if (!part.starts_with("gpu")) continue;
    part.remove_prefix(3);
    const size_t last = part.find_last_of("=:");
    if (last == std::string_view::npos) {
      found.count = std::max<int64_t>(found.count, 1);
      continue;
    }
    const auto count = parse_integer(part.substr(last + 1));
    if (!count || *count < 0 || *count > 1'000'000) return std::nullopt;
    found.count = std::max(found.count, *count);
    if (last > 1 && part.front() == ':') found.type = part.substr(1, last - 1);
  }
  return found;
}

bool has_slurm_type(const Cluster* cluster, const SlurmGpus& gpus) {
  if (gpus.type.empty() || cluster == nullptr || cluster->pools.front().type == "gpu") return true;
  return cluster->find(gpus.type).has_value();
}

}  // namespace forerun::cluster
