#include "whatif/device_share.h"

#include <algorithm>
#include <map>

#include "ingest/trace/communication_names.h"

namespace forerun::whatif {
namespace {

bool computes_in(const Trace& trace, const std::vector<bool>& communicates, EventIndex event) {
  return trace.events.kind[event] == EventKind::kernel && trace.events.collective[event] == kNoIndex &&
         !communicates[trace.events.name[event].value];
}

struct KernelEdge {
  int64_t time = 0;
  bool begins = false;
  EventIndex event = 0;
};

void share_among(const Trace& trace, std::vector<KernelEdge>& edges, std::vector<float>& shares) {
  std::sort(edges.begin(), edges.end(), [](const KernelEdge& a, const KernelEdge& b) {
    if (a.time != b.time) return a.time < b.time;
    return a.begins != b.begins ? !a.begins : a.event < b.event;  // ends first
  });
  // The integral of 1 / running since the beginning, taken at both ends of a kernel.
  double integral = 0;
  int64_t running = 0, last = 0;
  std::vector<double> at_begin(trace.size());
  for (const KernelEdge& edge : edges) {
    if (running > 0) integral += static_cast<double>(edge.time - last) / static_cast<double>(running);
    last = edge.time;
    if (edge.begins) {
      at_begin[edge.event] = integral;
      ++running;
    } else {
      --running;
      const auto duration = static_cast<double>(trace.events.duration[edge.event]);
      shares[edge.event] = static_cast<float>((integral - at_begin[edge.event]) / duration);
    }
  }
}

}  // namespace

std::vector<float> device_shares(const Trace& trace) {
  std::vector<float> shares(trace.size(), 0.0F);
  const std::vector<bool> communicates = communicating_kernels(trace);
  std::map<int64_t, std::vector<KernelEdge>> edges;  // by device
  for (EventIndex i = 0; i < trace.size(); ++i) {
    if (!computes_in(trace, communicates, i) || trace.events.duration[i] <= 0) continue;
    auto& of_device = edges[trace.lane_of(i).process];
    of_device.push_back({trace.events.start[i], true, i});
    of_device.push_back({trace.events.end(i), false, i});
  }
  for (auto& [device, list] : edges) share_among(trace, list, shares);
  return shares;
}

}  // namespace forerun::whatif
