#include "testbed/memory_traffic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "derive/work.h"

namespace forerun::scale {
namespace {

// Found on training families, each predicted without it (data/resources).
constexpr double kCacheShare = 0.4;  // of the cache: what half comes from
constexpr double kReadPower = 4;

size_t traffic_kind(const OpWork& work) {
  if (work.cls == OpClass::convolution) {
    if (work.gemm_count > 0 && work.gemm_table[0].batch > 1) return 2;
    return work.window > 1 ? 0 : 1;
  }
  return work.gemm_count > 0 ? 3 : 4;
}

class CacheWalk {
 public:
  CacheWalk(const Graph& graph, Bytes cache)
      : graph_(graph),
        kept_(std::max(1.0, kCacheShare * static_cast<double>(cache.value))),
        used_(graph.storages().size(), -1) {}

  void add(const Op& op, const OpWork& work, Traffic& traffic) {
    const size_t kind = traffic_kind(work);
    const double read = static_cast<double>(work.read.value);
    const double written = static_cast<double>(work.written.value);
    double beyond = missed_reads(op, read);
    beyond += written / (1 + kept_ / std::max(written, 1.0));
    traffic[kind] += beyond;
    traffic[kind + kTrafficKinds] += std::max(0.0, read + written - beyond);
    clock_ += written;
    for (const TensorId id : graph_.outputs(op)) touch(graph_.tensor(id).storage);
  }

 private:
  // Bytes that each storage among the inputs gives; work_of tells how much is read of all.
  [[nodiscard]] std::vector<std::pair<StorageId, double>> inputs_of(const Op& op) const {
    std::vector<std::pair<StorageId, double>> inputs;
    for (const TensorId id : graph_.inputs(op)) {
      const StorageId storage = graph_.tensor(id).storage;
      if (!storage.valid() || !graph_.storage(storage).on_gpu) continue;
      const double bytes =
          static_cast<double>(std::min(graph_.bytes_of(id).value, graph_.storage(storage).bytes.value));
      const auto known = std::find_if(inputs.begin(), inputs.end(), [&](const auto& i) { return i.first == storage; });
      if (known == inputs.end()) {
        inputs.emplace_back(storage, bytes);
      } else {
        known->second = std::max(known->second, bytes);
      }
    }
    return inputs;
  }

  double missed_reads(const Op& op, double read) {
    const std::vector<std::pair<StorageId, double>> inputs = inputs_of(op);
    double all = 0;
    for (const auto& [storage, bytes] : inputs) all += bytes;
    if (!(all > 0)) return 0;
    const double part = std::min(1.0, read / all);
    double missed = 0;
    for (const auto& [storage, bytes] : inputs) {
      const double last = used_[storage.value];
      const double distance = last < 0 ? std::numeric_limits<double>::infinity() : clock_ - last + part * bytes;
      if (bytes > 0) missed += part * bytes / (1 + std::pow(kept_ / distance, kReadPower));
    }
    clock_ += part * all;
    for (const auto& [storage, bytes] : inputs) touch(storage);
    return missed;
  }

  void touch(StorageId storage) {
    if (storage.valid()) used_[storage.value] = clock_;
  }

  const Graph& graph_;
  double kept_;
  std::vector<double> used_;  // by storage: the clock when it was last touched
  double clock_ = 0;          // bytes touched
};

}  // namespace

std::vector<Traffic> op_traffic(const Graph& graph, Bytes cache) {
  std::vector<Traffic> traffic(graph.op_count());
  CacheWalk walk(graph, cache);
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.phase == Phase::update) continue;
    const OpWork work = work_of(graph, op);
    if (work.on_gpu) walk.add(op, work, traffic[i]);
  }
  return traffic;
}

Traffic memory_traffic(const Graph& graph, Bytes cache) {
  Traffic traffic = {};
  for (const Traffic& op : op_traffic(graph, cache)) {
    for (size_t kind = 0; kind < traffic.size(); ++kind) traffic[kind] += op[kind];
  }
  traffic.back() = 4 * static_cast<double>(graph.parameter_count());
  return traffic;
}

}  // namespace forerun::scale
