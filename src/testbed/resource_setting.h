// ResourceSetting: servers, workers and links of distributed training, and their names as Driple writes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace forerun::scale {

// How the answers of a server share its link: as the hosts' rates say, with more for worker 0; with more for the last
// worker; or evenly.
enum class LinkState : uint8_t { first, last, even };

struct ResourceSetting {
  int64_t servers = 1;  // 0: all-reduce
  int64_t workers = 2;
  double bits_per_second = 10e9;  // of every node's link
  bool sync = true;
  bool shared_gpu = true;
  bool overlap = false;
  LinkState links = LinkState::first;
};

// "P1w2-10G", "AR4-10G", "P2w4-500M".
Result<ResourceSetting> resource_setting(std::string_view name);
// "P1w2-10G sync", "P2w4-500M async", "AR4-10G allreduce".
std::string setting_name(const ResourceSetting& setting);

}  // namespace forerun::scale
