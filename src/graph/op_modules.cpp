#include "graph/op_modules.h"

#include <algorithm>
#include <cctype>

namespace forerun {

bool runs_again(const Graph& graph, const Op& op) {
  return op.phase == Phase::backward && graph.names()[op.autograd_node].empty() && !graph.module(op).empty();
}

std::vector<NameId> op_modules(const Graph& graph) {
  SequenceModules by_sequence(graph);
  for (const Op& op : graph.ops()) {
    const bool recorded = op.phase == Phase::forward || runs_again(graph, op);
    if (recorded && op.sequence != 0) by_sequence.add(op.sequence, op.module);
  }
  std::vector<NameId> modules;
  modules.reserve(graph.op_count());
  NameId again;  // of the op that ran again last
  for (const Op& op : graph.ops()) {
    const bool runs = runs_again(graph, op);
    if (runs) again = op.module;
    const bool differentiates = op.phase == Phase::backward && !runs;
    const NameId known = differentiates ? by_sequence.of(op.sequence) : NameId();
    const bool skipped = differentiates && again.valid() && graph.module(op).empty();  // its op did not run again
    modules.push_back(known.valid() ? known : skipped ? again : op.module);
  }
  return modules;
}

std::string_view block_of(std::string_view module) {
  size_t begin = 0;
  while (begin < module.size()) {
    const size_t end = std::min(module.find('.', begin), module.size());
    const std::string_view part = module.substr(begin, end - begin);
    const bool number =
        !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (number) return end < module.size() ? module.substr(0, end) : std::string_view();
    begin = end + 1;
  }
  return {};
}

ModuleBlocks::ModuleBlocks(const Graph& graph) {
  for (const Op& op : graph.ops()) {
    if (op.phase != Phase::forward) continue;
    if (const std::string_view block = block_of(graph.module(op)); !block.empty()) names_.emplace(block);
  }
}

std::string_view ModuleBlocks::of(std::string_view module) const {
  if (const std::string_view block = block_of(module); !block.empty()) return block;
  return names_.contains(module) ? module : std::string_view();
}

std::string folded_module(std::string_view module) {
  std::string text;
  for (size_t begin = 0; begin <= module.size();) {
    const size_t end = std::min(module.find('.', begin), module.size());
    const std::string_view part = module.substr(begin, end - begin);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    if (begin > 0) text += '.';
    text += number ? "*" : part;
    begin = end + 1;
  }
  return text;
}

}  // namespace forerun
