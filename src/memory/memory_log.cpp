#include "memory/memory_log.h"

#include <algorithm>
#include <map>

#include "base/id_index.h"
#include "graph/op_modules.h"

namespace forerun {
namespace {

constexpr size_t kMostReserved = 1'000'000;  // events

// "layer1.0.conv1" of the parameter "layer1.0.conv1.weight".
std::string module_of_root(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string() : std::string(name.substr(0, dot));
}

}  // namespace

MemoryLog log_iterations(const Graph& graph, const IterationReplayOptions& options) {
  MemoryLog log;
  IterationReplayOptions observed = options;
  int64_t allocated = 0;
  int64_t most = 0;
  // Most storages come and go once an iteration; memory that is not written to costs nothing.
  const size_t iterations = static_cast<size_t>(std::max(options.iterations, 0));
  log.events.reserve(std::min(2 * iterations * (graph.storages().size() + graph.op_count() / 4), kMostReserved));
  observed.observe = [&](const ReplayEvent& event) {
    if (event.bytes > 0) allocated += event.block;
    if (event.bytes < 0) allocated -= event.block;
    log.events.push_back(event);
    if (allocated > most) {
      most = allocated;
      log.peak = log.events.size() - 1;
    }
    if (options.observe) options.observe(event);
  };
  log.replay = replay_iterations(graph, observed);
  return log;
}

std::vector<LiveBlock> live_after(const MemoryLog& log, size_t event) {
  // The same addresses are taken again and again: an event that frees one leaves its place.
  constexpr uint32_t kFree = IdIndex::kNone;
  struct Address {
    int64_t address = 0;
    uint32_t last = kFree;  // the event that took it
  };
  std::vector<Address> addresses;
  IdIndex index;
  const size_t end = std::min(event + 1, log.events.size());
  for (size_t i = 0; i < end; ++i) {
    const ReplayEvent& e = log.events[i];
    const auto hash = mixed(0, static_cast<uint64_t>(e.address));
    uint32_t at = index.find(hash, [&](uint32_t known) { return addresses[known].address == e.address; });
    if (at == IdIndex::kNone) {
      at = static_cast<uint32_t>(addresses.size());
      addresses.push_back({e.address});
      index.add(hash, at);
    }
    addresses[at].last = e.bytes < 0 ? kFree : static_cast<uint32_t>(i);
  }
  std::vector<LiveBlock> blocks;
  for (const Address& address : addresses) {
    if (address.last == kFree) continue;
    const ReplayEvent& e = log.events[address.last];
    blocks.push_back({.storage = e.storage, .made_by = e.op, .use = e.use, .bytes = e.block, .address = e.address});
  }
  std::sort(blocks.begin(), blocks.end(), [](const LiveBlock& a, const LiveBlock& b) {
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    const uint32_t first = a.made_by.valid() ? a.made_by.value + 1 : 0;
    const uint32_t second = b.made_by.valid() ? b.made_by.value + 1 : 0;
    return first != second ? first < second : a.address < b.address;
  });
  return blocks;
}

std::string_view name_of(Use use) {
  switch (use) {
    case Use::parameter: return "parameters";
    case Use::buffer: return "buffers";
    case Use::state: return "optimizer state";
    case Use::input: return "inputs";
    case Use::gradient: return "gradients";
    case Use::activation: return "activations";
    case Use::temporary: return "temporaries";
    case Use::workspace: return "workspaces";
  }
  return "";
}

std::vector<LiveShare> live_shares(const Graph& graph, const MemoryLog& log, size_t event) {
  const std::vector<NameId> modules = op_modules(graph);
  std::map<std::pair<std::string, Use>, LiveShare> groups;
  for (const LiveBlock& block : live_after(log, event)) {
    std::string module;
    std::string what;
    const bool rooted = block.storage.valid() && graph.storage(block.storage).root != Root::none;
    if (rooted) {
      what = graph.names()[graph.storage(block.storage).root_name];
      module = module_of_root(what);
    } else if (block.made_by.valid()) {
      what = graph.name(graph.op(block.made_by));
      module = graph.names()[modules[block.made_by.value]];
    }
    if (block.use == Use::workspace) {
      module.clear();
      what = "cuBLAS";
    }
    module = folded_module(module);
    LiveShare& group = groups[{module, block.use}];
    ++group.count;
    group.bytes += block.bytes;
    if (group.count > 1) continue;  // the largest comes first
    group.module = module;
    group.use = block.use;
    group.largest = block.bytes;
    group.what = what;
  }
  std::vector<LiveShare> shares;
  shares.reserve(groups.size());
  for (auto& [key, group] : groups) shares.push_back(std::move(group));
  std::stable_sort(shares.begin(), shares.end(),
                   [](const LiveShare& a, const LiveShare& b) { return a.bytes > b.bytes; });
  return shares;
}

}  // namespace forerun
