#include "cost/collective/link_name.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "cost/collective/node_link.h"

namespace forerun {
namespace {

constexpr double kNetworkLatencyUs = 5;  // where only a rate is given: RDMA
constexpr double kNodeLatencyUs = 3;
constexpr double kSlowestNetwork = 1e6 / 8, kFastestNetwork = 1e15 / 8;  // bytes per second

// A rate such as "800Gb/s" in bytes per second; 0 where the text is none.
double rate_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value <= 0) return 0;
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit == "Gb/s" || unit == "Gbps" || unit == "gbps" || unit == "Gbit/s") return value * 1e9 / 8;
  if (unit == "GB/s") return value * 1e9;
  return 0;
}

}  // namespace

Result<Link> network_by_name(std::string_view name, const DeviceCatalogue& catalogue) {
  if (const double rate = rate_of(name); rate > 0) {
    if (rate < kSlowestNetwork || rate > kFastestNetwork) {
      return Error{fmt::format("'{}' is out of range", name), "", "give a rate from 0.001Gb/s to 1000000Gb/s"};
    }
    return Link{std::string(name), {}, nanoseconds_from_us(kNetworkLatencyUs), rate};
  }
  int64_t count = 1;
  const size_t times = name.find('x');
  if (times != std::string_view::npos && times > 0) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + times, number);
    if (error == std::errc() && end == name.data() + times && number >= 1 && number <= 64) {
      count = number;
      name.remove_prefix(times + 1);
    }
  }
  auto link = catalogue.find_link(name);
  if (!link) {
    Error problem = link.error();
    problem.remedy += "; or give several (4xhdr) or a rate (800Gb/s, 100GB/s)";
    return problem;
  }
  if (count > 1) link->name = fmt::format("{} x {}", count, link->name);
  link->bandwidth *= static_cast<double>(count);
  return link;
}

Link link_within(const Device& gpu, int64_t node) {
  const NodeLink link = node_link(gpu, node);
  return {link.name, {}, nanoseconds_from_us(kNodeLatencyUs), link.bandwidth};
}

}  // namespace forerun
