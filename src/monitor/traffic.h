// Plain TCP traffic between the nodes of a group: what a shaped link really carries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace forerun::monitor {

// Bytes received and the time from the first to the last of them.
struct Throughput {
  uint64_t bytes = 0;
  double seconds = 0;

  [[nodiscard]] double gigabits_per_second() const {
    return seconds > 0 ? static_cast<double>(bytes) * 8e-9 / seconds : 0;
  }
};

// Listens at `address`, takes `senders` connections and receives until each is closed.
Result<Throughput> receive_traffic(const std::string& address, int senders);

// Connects to `address`, trying for five seconds, and sends for so long.
Status send_traffic(const std::string& address, double seconds);

}  // namespace forerun::monitor
