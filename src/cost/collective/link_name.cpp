#include "cost/collective/link_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "cost/collective/node_link.h"

namespace forerun {
namespace {

constexpr double kNetworkLatencyUs = 5;  // where only a rate is given: RDMA
constexpr double kNodeLatencyUs = 3;
constexpr double kSlowestNetwork = 1e6 / 8, kFastestNetwork = 1e15 / 8;  // bytes per second
constexpr int64_t kMostRails = 128;

// Rails of machines of eight GPUs, from the data sheets of DGX-1 (four ConnectX-4 EDR), DGX A100 (eight ConnectX-6 HDR), DGX H100 and
// B200 (eight ConnectX-7, 400 Gb/s), DGX B300 (eight ConnectX-8, 800 Gb/s) and Azure's ND MI300X v5 (eight ConnectX-7).
struct MachineRails {
  std::string_view architecture;
  int least_capability;
  int64_t rails;
  std::string_view link;
  std::string_view machine;
};
constexpr int64_t kMachineGpus = 8;
constexpr MachineRails kMachines[] = {
    {"blackwell", 103, 8, "xdr", "a DGX B300"}, {"blackwell", 0, 8, "ndr", "a DGX B200"},
    {"hopper", 0, 8, "ndr", "a DGX H100"},      {"ampere", 0, 8, "hdr", "a DGX A100"},
    {"volta", 0, 4, "edr", "a DGX-1"},          {"pascal", 60, 4, "edr", "a DGX-1"},
    {"cdna3", 0, 8, "ndr", "an ND MI300X v5"},
};
constexpr MachineRails kOtherMachines = {"", 0, 4, "hdr", ""};

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
    if (error == std::errc() && end == name.data() + times && number >= 1 && number <= kMostRails) {
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

UsualNetwork usual_network(const Device& gpu, int64_t node) {
  const auto* const known = std::find_if(std::begin(kMachines), std::end(kMachines), [&](const MachineRails& machine) {
    return gpu.architecture == machine.architecture && gpu.compute_capability >= machine.least_capability;
  });
  // Boards without NVLink, or with a bridge between two, are sold for other machines.
  const bool linked = gpu.link_bandwidth > 0 && gpu.linked_gpus == 0;
  const MachineRails& machine = known != std::end(kMachines) && linked ? *known : kOtherMachines;
  const int64_t rails = std::clamp<int64_t>(machine.rails * node / kMachineGpus, 1, kMostRails);
  return {fmt::format("{}x{}", rails, machine.link), std::string(machine.machine)};
}

Link link_within(const Device& gpu, int64_t node) {
  const NodeLink link = node_link(gpu, node);
  return {link.name, {}, nanoseconds_from_us(kNodeLatencyUs), link.bandwidth};
}

}  // namespace forerun
