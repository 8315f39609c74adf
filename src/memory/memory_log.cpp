#include "memory/memory_log.h"

#include <algorithm>
#include <tuple>

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
  // Most blocks share their module with others, whose name is folded once.
  StringTable folded;
  const NameId outside = folded.intern("");
  std::vector<NameId> of_root(graph.names().size()), of_module(graph.names().size());  // by name
  std::vector<LiveShare> shares;
  std::vector<size_t> group_of;  // by folded module and use; 0: none yet, else one more than its place
  for (const LiveBlock& block : live_after(log, event)) {
    const bool rooted = block.storage.valid() && graph.storage(block.storage).root != Root::none;
    NameId module = outside;
    if (rooted && block.use != Use::workspace) {
      const NameId name = graph.storage(block.storage).root_name;
      NameId& known = of_root[name.value];
      if (!known.valid()) known = folded.intern(folded_module(module_of_root(graph.names()[name])));
      module = known;
    } else if (block.made_by.valid() && block.use != Use::workspace) {
      const NameId name = modules[block.made_by.value];
      NameId& known = of_module[name.value];
      if (!known.valid()) known = folded.intern(folded_module(graph.names()[name]));
      module = known;
    }
    const size_t key = module.value * kUses + static_cast<size_t>(block.use);
    if (group_of.size() <= key) group_of.resize(key + kUses);
    if (group_of[key] == 0) {  // the largest comes first
      LiveShare& share = shares.emplace_back();
      group_of[key] = shares.size();
      share.module = folded[module];
      share.use = block.use;
      share.largest = block.bytes;
      if (block.use == Use::workspace) {
        share.what = "cuBLAS";
      } else if (rooted) {
        share.what = graph.names()[graph.storage(block.storage).root_name];
      } else if (block.made_by.valid()) {
        share.what = graph.name(graph.op(block.made_by));
      }
    }
    LiveShare& share = shares[group_of[key] - 1];
    ++share.count;
    share.bytes += block.bytes;
  }
  std::sort(shares.begin(), shares.end(), [](const LiveShare& x, const LiveShare& y) {
    if (x.bytes != y.bytes) return x.bytes > y.bytes;
    return std::tie(x.module, x.use) < std::tie(y.module, y.use);
  });
  return shares;
}

}  // namespace forerun
