// What `ip` and `tc` do, asked of the kernel directly (rtnetlink(7)): bridges, veth pairs, addresses, routes and token
// bucket rate limits, in the network namespace in which the Netlink was opened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace forerun::monitor {

// A rate in bits a second and the two sizes of its token bucket.
struct RateLimit {
  uint64_t bits_per_second = 0;
  uint32_t burst_bytes = 0;  // let through at once
  uint32_t queue_bytes = 0;  // what may wait, as in a switch's buffer; more is dropped

  // A bucket of 1 ms, at least 256 KiB, and a queue of at least 256 MiB: deeper than the windows of a few TCP connections,
  // so that nothing is lost and links are shared without the stalls of retransmission.
  static RateLimit of(uint64_t bits_per_second);
};

// "10G", "1G", "500M", "2.5G" -> bits a second.
Result<uint64_t> parse_rate(const std::string& text);

class Netlink {
 public:
  static Result<Netlink> open();

  Netlink(Netlink&& other) noexcept;
  Netlink& operator=(Netlink&&) = delete;
  ~Netlink();

  Status add_bridge(const std::string& name);
  // A pair: `name` here, `peer` in the namespace of process `peer_pid`.
  Status add_veth(const std::string& name, const std::string& peer, int peer_pid);
  Status set_up(const std::string& name);
  Status set_master(const std::string& name, const std::string& bridge);
  Status add_address(const std::string& name, const std::string& ipv4, int prefix);
  Status add_default_route(const std::string& gateway);
  Status limit_rate(const std::string& name, const RateLimit& limit);  // of what the interface sends
  Status remove(const std::string& name);

 private:
  explicit Netlink(int socket) : socket_(socket) {}
  Status ask(std::vector<char>& message, const std::string& what);

  int socket_ = -1;
  uint32_t sequence_ = 0;
};

}  // namespace forerun::monitor
