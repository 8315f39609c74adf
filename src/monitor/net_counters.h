// Bytes that network interfaces sent and received, from the kernel's table /proc/.../net/dev.
//
// A table belongs to a network namespace: the caller's, that of a process, or a named one (/run/netns/NAME). It stays open,
// so that a reading is one system call, and goes on to be read after a change of namespace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace forerun::monitor {

struct InterfaceBytes {
  std::string name;
  uint64_t received = 0;
  uint64_t sent = 0;
};

// Two header lines, then "  eth0: 836873483   33443    0    0    0     0          0         0  2083683   29603 ...":
// received bytes is the first number, sent bytes the ninth. Lines that are no such row are passed over.
std::vector<InterfaceBytes> parse_net_dev(std::string_view text);

class NetCounters {
 public:
  static Result<NetCounters> of_self();
  static Result<NetCounters> of_process(int pid);
  static Result<NetCounters> of_namespace(const std::string& name);  // a name of /run/netns, or a path

  NetCounters(NetCounters&& other) noexcept;
  NetCounters& operator=(NetCounters&& other) noexcept;
  NetCounters(const NetCounters&) = delete;
  NetCounters& operator=(const NetCounters&) = delete;
  ~NetCounters();

  // Empty where the table can no longer be read.
  [[nodiscard]] std::vector<InterfaceBytes> read();

 private:
  explicit NetCounters(int file) : file_(file) {}
  static Result<NetCounters> open(const std::string& path);

  int file_ = -1;
  std::string buffer_;
};

// Sent and received of all interfaces but the loopback, or of the one named.
InterfaceBytes total_of(const std::vector<InterfaceBytes>& interfaces, const std::string& name);

}  // namespace forerun::monitor
