#include "memory/memory_timeline.h"

#include <numeric>
#include <unordered_map>

#include "graph/op_modules.h"

namespace forerun {
namespace {

// Live bytes by use, over events that may hand a block from one use to another.
class Balance {
 public:
  void apply(const ReplayEvent& event) {
    const auto found = blocks_.find(event.address);
    if (found != blocks_.end()) {
      at(found->second.first) -= found->second.second;
      blocks_.erase(found);
    }
    if (event.bytes < 0) return;
    blocks_[event.address] = {event.use, event.block};
    at(event.use) += event.block;
  }
  [[nodiscard]] const BytesByUse& live() const { return live_; }

 private:
  int64_t& at(Use use) { return live_[static_cast<size_t>(use)]; }
  std::unordered_map<int64_t, std::pair<Use, int64_t>> blocks_;  // by address
  BytesByUse live_ = {};
};

std::string op_text(const Graph& graph, OpId id) {
  if (!id.valid()) return "between ops";
  const std::string& module = graph.names()[op_modules(graph)[id.value]];
  return graph.name(graph.op(id)) + (module.empty() ? "" : " in " + module);
}

void set_places(const std::vector<OpId>& ops, size_t op_count, std::vector<MemorySample>& samples) {
  for (size_t i = 0; i < samples.size();) {
    size_t end = i;
    while (end < samples.size() && ops[end] == ops[i]) ++end;
    const bool outside = !ops[i].valid();
    const double base = outside ? (i == 0 ? -1 : static_cast<double>(op_count)) : static_cast<double>(ops[i].value);
    for (size_t k = i; k < end; ++k) {
      samples[k].at = base + static_cast<double>(k - i + 1) / static_cast<double>(end - i + 1);
    }
    i = end;
  }
}

}  // namespace

int64_t MemorySample::total() const { return std::accumulate(live.begin(), live.end(), int64_t{0}); }

MemoryTimeline memory_timeline(const Graph& graph, const MemoryLog& log, const std::string& title) {
  MemoryTimeline timeline{.title = title, .iteration = log.replay.peak_iteration};
  timeline.phases.fill(graph.op_count());
  for (size_t i = graph.op_count(); i-- > 0;) {
    for (size_t phase = 0; phase <= static_cast<size_t>(graph.ops()[i].phase); ++phase) timeline.phases[phase] = i;
  }
  timeline.phases[0] = 0;
  Balance balance;
  std::vector<OpId> ops;
  int64_t most = -1;
  for (size_t i = 0; i < log.events.size(); ++i) {
    const ReplayEvent& event = log.events[i];
    balance.apply(event);
    if (event.iteration != timeline.iteration) continue;
    if (event.iteration == 0 && !event.op.valid() && ops.empty() && i + 1 < log.events.size() &&
        !log.events[i + 1].op.valid()) {
      continue;  // building the model
    }
    timeline.samples.push_back({.live = balance.live(), .reserved = event.reserved});
    ops.push_back(event.op);
    if (timeline.samples.back().total() > most) {
      most = timeline.samples.back().total();
      timeline.peak = timeline.samples.size() - 1;
      timeline.peak_op = op_text(graph, event.op);
    }
  }
  set_places(ops, graph.op_count(), timeline.samples);
  return timeline;
}

}  // namespace forerun
