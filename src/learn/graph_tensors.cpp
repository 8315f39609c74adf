#include "learn/graph_tensors.h"

#include <algorithm>
#include <cmath>

#include "derive/work.h"

namespace forerun::learn {
namespace {

int64_t elements(const Graph& graph, std::span<const TensorId> tensors) {
  int64_t count = 0;
  for (const TensorId tensor : tensors) count += graph.element_count(tensor);
  return count;
}

float log1p(double amount) { return static_cast<float>(std::log1p(std::max(amount, 0.0))); }

// The ops that last wrote what each op reads, as {writers, readers}.
torch::Tensor edges_of(const Graph& graph) {
  std::vector<OpId> writer(graph.storages().size());
  std::vector<int64_t> sources;
  std::vector<int64_t> targets;
  std::vector<OpId> seen;  // the current op's writers
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.op(OpId(i));
    seen.clear();
    for (const TensorId input : graph.inputs(op)) {
      const OpId source = writer[graph.tensor(input).storage.value];
      if (source.valid()) seen.push_back(source);
    }
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    for (const OpId source : seen) {
      sources.push_back(source.value);
      targets.push_back(static_cast<int64_t>(i));
    }
    for (const TensorId output : graph.outputs(op)) writer[graph.tensor(output).storage.value] = OpId(i);
  }
  return torch::stack({torch::tensor(sources, torch::kInt64), torch::tensor(targets, torch::kInt64)});
}

}  // namespace

void OpVocabulary::add(const Graph& graph) {
  for (const Op& op : graph.ops()) names_.intern(graph.name(op));
}

int64_t OpVocabulary::index_of(std::string_view op_name) const {
  const NameId id = names_.find(op_name);
  return id.valid() ? int64_t{id.value} + 1 : 0;
}

GraphTensors graph_tensors(const Graph& graph, const OpVocabulary& vocabulary) {
  const auto count = static_cast<int64_t>(graph.op_count());
  GraphTensors tensors{torch::empty({count}, torch::kInt64), torch::empty({count}, torch::kInt64),
                       torch::empty({count, kFeatureCount}, torch::kFloat32), edges_of(graph)};
  auto names = tensors.names.accessor<int64_t, 1>();
  auto phases = tensors.phases.accessor<int64_t, 1>();
  auto features = tensors.features.accessor<float, 2>();
  for (int64_t i = 0; i < count; ++i) {
    const Op& op = graph.op(OpId(static_cast<size_t>(i)));
    const OpWork work = work_of(graph, op);
    names[i] = vocabulary.index_of(graph.name(op));
    phases[i] = static_cast<int64_t>(op.phase);
    const auto set = [&](Feature feature, double amount) {
      features[i][static_cast<int64_t>(feature)] = log1p(amount);
    };
    set(Feature::flops, work.flops.value);
    set(Feature::bytes_read, static_cast<double>(work.read.value));
    set(Feature::bytes_written, static_cast<double>(work.written.value));
    set(Feature::input_elements, static_cast<double>(elements(graph, graph.inputs(op))));
    set(Feature::output_elements, static_cast<double>(elements(graph, graph.outputs(op))));
  }
  return tensors;
}

}  // namespace forerun::learn
