#include "timeline/execution_summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

namespace forerun {
namespace {

void add_collectives(const ExecutionTrace& trace, ExecutionSummary& summary) {
  std::map<std::string, ExecutionCollectiveRow> rows;
  for (const ExecutionCollective& collective : trace.collectives) {
    ExecutionCollectiveRow& row = rows[collective.name];
    const bool same = row.count == 0 || row.group_size == collective.group_size;
    row.name = collective.name;
    row.group_size = same ? collective.group_size : -1;
    ++row.count;
    row.bytes += std::max<int64_t>(0, collective.bytes);
    row.largest = std::max(row.largest, collective.bytes);
  }
  for (auto& [name, row] : rows) summary.collectives.push_back(std::move(row));
  std::stable_sort(summary.collectives.begin(), summary.collectives.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
}

void add_ops(const ExecutionTrace& trace, ExecutionSummary& summary) {
  std::map<std::string, ExecutionOpRow> rows;
  for (const ExecutionNode& node : trace.nodes) {
    if (node.kind == NodeKind::label) continue;
    ExecutionOpRow& row = rows[trace.name(node)];
    row.name = trace.name(node);
    ++row.count;
    if (node.duration_us >= 0) row.time_us = std::max<int64_t>(0, row.time_us) + node.duration_us;
  }
  for (auto& [name, row] : rows) summary.ops.push_back(std::move(row));
  std::stable_sort(summary.ops.begin(), summary.ops.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.time_us, a.count) > std::make_pair(b.time_us, b.count);
  });
}

}  // namespace

ExecutionSummary summary_of(const ExecutionTrace& trace) {
  ExecutionSummary summary;
  summary.file = trace.file;
  summary.format = trace.chakra ? "Chakra execution trace" : "PyTorch execution trace";
  summary.schema = trace.schema;
  summary.kinds.assign(kNodeKinds, 0);
  summary.nodes = static_cast<int64_t>(trace.nodes.size());
  summary.skipped = trace.skipped;
  summary.truncated = trace.truncated;
  summary.first_problem = trace.first_problem;
  std::unordered_set<uint64_t> ids;
  std::set<int64_t> threads;
  for (const ExecutionNode& node : trace.nodes) {
    ids.insert(node.id);
    if (node.thread >= 0) threads.insert(node.thread);
    ++summary.kinds[static_cast<size_t>(node.kind)];
    summary.control += node.control;
    summary.data += node.data;
    summary.with_shapes += node.inputs.shapes.valid() || node.outputs.shapes.valid() ? 1 : 0;
    // Chakra's converter numbers calls: "torch::autograd::AccumulateGrad(0)".
    if (!trace.name(node).starts_with("torch::autograd::AccumulateGrad")) continue;
    ++summary.gradients;
    if (node.inputs.values.valid()) summary.gradient_bytes += tensor_bytes(trace.names[node.inputs.values]);
  }
  for (const uint64_t id : trace.dependencies) summary.dangling += ids.contains(id) ? 0 : 1;
  summary.threads = static_cast<int64_t>(threads.size());
  add_collectives(trace, summary);
  add_ops(trace, summary);
  return summary;
}

}  // namespace forerun
