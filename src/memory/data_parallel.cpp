#include "memory/data_parallel.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "memory/graph_rewrite.h"
#include "memory/sharded_blocks.h"
#include "memory/update_columns.h"

namespace forerun {
namespace {

std::vector<int64_t> extents_of(const Graph& graph, TensorId tensor) {
  const auto shape = graph.shape(tensor);
  return {shape.begin(), shape.end()};
}

// Gradients that live elsewhere from where the update reads them: by their storage.
using Homes = std::unordered_map<uint32_t, StorageId>;

GraphRewrite::Choice take_from(const Graph& graph, const Homes& homes) {
  return [&graph, &homes](size_t op, TensorId id) -> std::optional<GraphRewrite::Taken> {
    if (op >= graph.op_count() || graph.ops()[op].phase != Phase::update) return std::nullopt;
    const auto home = homes.find(graph.tensor(id).storage.value);
    if (home == homes.end()) return std::nullopt;
    return GraphRewrite::Taken{home->second, extents_of(graph, id)};
  };
}

// DDP's buckets; with views, gradients live there.
void add_buckets(const Graph& graph, const DataParallel& plan, GraphRewrite& rewrite, Homes& homes) {
  const std::vector<Gradient> gradients = gradients_of(graph);
  std::vector<Bytes> sizes;
  sizes.reserve(gradients.size());
  for (const Gradient& gradient : gradients) sizes.push_back(graph.storage(gradient.storage).bytes);
  size_t next = 0;
  int number = 0;
  for (const Bytes bytes : bucket_sizes(sizes, plan.first_bucket, plan.bucket)) {
    const StorageId bucket = rewrite.add_root(bytes, Root::buffer, std::string(kBucketName) + std::to_string(number++));
    for (Bytes filled; next < gradients.size() && filled < bytes; ++next) {
      filled += sizes[next];
      if (!plan.bucket_views) continue;
      homes[gradients[next].storage.value] = bucket;
      rewrite.free_before(gradients[next].storage, gradients[next].made + 1);
    }
  }
}

// The update of the GPU that has most parameters to update: what belongs to the others is empty.
void keep_own_columns(const Graph& graph, int64_t gpus, GraphRewrite& rewrite) {
  const UpdateColumns columns(graph);
  std::map<uint32_t, int64_t> sizes;  // bytes of parameters, by column
  for (uint32_t id = 0; id < graph.storages().size(); ++id) {
    const Storage& storage = graph.storages()[id];
    if (storage.root == Root::parameter) sizes[columns.column(StorageId(id))] += storage.bytes.value;
  }
  std::vector<std::pair<int64_t, uint32_t>> largest_first;
  for (const auto& [column, bytes] : sizes) largest_first.emplace_back(-bytes, column);
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<int64_t> loads(static_cast<size_t>(gpus));
  std::unordered_map<uint32_t, size_t> owners;
  for (const auto& [negative, column] : largest_first) {
    const auto least = std::min_element(loads.begin(), loads.end());
    *least -= negative;
    owners[column] = static_cast<size_t>(least - loads.begin());
  }
  const auto most = static_cast<size_t>(std::max_element(loads.begin(), loads.end()) - loads.begin());

  std::vector<bool> before(graph.storages().size(), false);  // made before the update
  for (const Op& op : graph.ops()) {
    if (op.phase == Phase::update) continue;
    for (const TensorId id : graph.outputs(op)) before[graph.tensor(id).storage.value] = true;
  }
  for (uint32_t id = 0; id < graph.storages().size(); ++id) {
    const Storage& storage = graph.storages()[id];
    if (storage.root != Root::state && (storage.root != Root::none || before[id])) continue;
    const auto owner = owners.find(columns.column(StorageId(id)));
    if (owner != owners.end() && owner->second != most) rewrite.resize(StorageId(id), Bytes(0));
  }
}

}  // namespace

std::vector<Bytes> bucket_sizes(const std::vector<Bytes>& gradients, Bytes first, Bytes others) {
  std::vector<Bytes> buckets;
  size_t next = 0;
  for (const size_t end : bucket_ends(gradients, first, others)) {
    Bytes filled;
    for (; next <= end; ++next) filled += gradients[next];
    if (filled.value > 0) buckets.push_back(filled);
  }
  return buckets;
}

Graph per_gpu(const Graph& graph, const DataParallel& plan) {
  if (plan.zero >= 2) return sharded_blocks(graph, plan.gpus, plan.zero == 3);
  GraphRewrite rewrite(graph);
  Homes homes;
  add_buckets(graph, plan, rewrite, homes);
  if (plan.zero == 1) keep_own_columns(graph, plan.gpus, rewrite);
  return rewrite.finish(take_from(graph, homes));
}

Graph accumulating(const Graph& graph) {
  GraphRewrite rewrite(graph);
  Homes homes;
  int number = 0;
  for (const Gradient& gradient : gradients_of(graph)) {
    homes[gradient.storage.value] = rewrite.add_root(graph.storage(gradient.storage).bytes, Root::buffer,
                                                     std::string(kAccumulatedName) + std::to_string(number++));
    rewrite.free_before(gradient.storage, gradient.made + 1);
  }
  return rewrite.finish(take_from(graph, homes));
}

}  // namespace forerun
