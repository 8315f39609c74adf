#include "cost/host/host.h"

#include <algorithm>
#include <cmath>

#include "base/json_file.h"
#include "derive/work.h"

namespace forerun {
namespace {

// Parameters as autograd sees them: each has one accumulation of its gradient, as one op or as an allocation and a copy.
int64_t parameter_tensors(const Graph& graph) {
  const NameId node = graph.names().find("torch::autograd::AccumulateGrad");
  if (!node.valid()) return 0;
  return std::count_if(graph.ops().begin(), graph.ops().end(), [&](const Op& op) {
    return op.autograd_node == node && graph.name(op) != "aten.new_empty_strided.default";
  });
}

bool is_on_host(const Graph& graph, const Op& op) {
  const auto results = graph.outputs(op).empty() ? graph.inputs(op) : graph.outputs(op);
  return !results.empty() && !graph.storage(graph.tensor(results[0]).storage).on_gpu;
}

Nanoseconds op_cost(const Graph& graph, const Op& op, int kernels, const HostConstants& constants) {
  const std::string& name = graph.name(op);
  if (name.starts_with("profiler.")) return constants.mark;
  const OpClass cls = op_class(name);
  const int64_t further = std::max(0, kernels - 1);
  if (cls == OpClass::optimizer) {
    const int64_t inputs = static_cast<int64_t>(op.input_count);
    const int64_t lists = foreach_lists(name, inputs, graph.attributes(op).get_bool("amsgrad", false));
    const int64_t tensors = inputs / std::max<int64_t>(1, lists);
    return constants.of(op.phase, cls) + constants.foreach_tensor * tensors + constants.further_kernel * further;
  }
  if (is_on_host(graph, op)) return constants.host_op;
  return constants.of(op.phase, cls) + constants.further_kernel * further;
}

Nanoseconds scaled(Nanoseconds cost, double speed) {
  return Nanoseconds(std::llround(static_cast<double>(cost.value) / speed));
}

}  // namespace

Result<HostConstants> load_host_constants(const std::filesystem::path& path) {
  Result<JsonObject> file = JsonObject::read(path);
  if (!file.ok()) return file.error();
  const std::string format = file->text("format");
  if (format != "host/1") file->fail("format", "unknown format \"" + format + "\"", "known is host/1");
  const auto us = [](JsonObject& object, const std::string& field) {
    return nanoseconds_from_us(object.number(field, Sign::not_negative));
  };
  HostConstants constants;
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::update}) {
    JsonObject classes = file->object(std::string(name_of(phase)) + "_op_us");
    for (size_t i = 0; i < kOpClassCount; ++i) {
      constants.of(phase, static_cast<OpClass>(i)) = us(classes, std::string(name_of(static_cast<OpClass>(i))));
    }
  }
  constants.host_op = us(*file, "host_op_us");
  constants.mark = us(*file, "mark_us");
  constants.further_kernel = us(*file, "further_kernel_us");
  constants.foreach_tensor = us(*file, "foreach_tensor_us");
  constants.parameter = us(*file, "parameter_us");
  constants.iteration = us(*file, "iteration_us");
  JsonObject scale = file->object("calibration");
  constants.scale.kinds = scale.texts("kinds");
  constants.scale.reference_us = scale.number("reference_us");
  constants.scale.at_reference = scale.number("at_reference");
  constants.scale.slope = scale.number("slope", Sign::not_negative);
  if (!file->status().ok()) return file->status().error();
  return constants;
}

double host_speed(const HostConstants& constants, const HostCalibration& calibration) {
  const HostScale& scale = constants.scale;
  double sum = 0;
  size_t found = 0;
  for (const auto& [kind, us] : calibration.forward) {
    if (us <= 0 || std::find(scale.kinds.begin(), scale.kinds.end(), kind) == scale.kinds.end()) continue;
    sum += std::log(us);
    ++found;
  }
  if (found == 0 || found != scale.kinds.size()) return 1;
  const double reading = std::exp(sum / static_cast<double>(found));
  return 1 / (scale.at_reference * std::pow(reading / scale.reference_us, scale.slope));
}

Nanoseconds HostCosts::total() const {
  Nanoseconds sum = per_iteration;
  for (const Nanoseconds cost : ops) sum += cost;
  return sum;
}

HostCosts host_costs(const Graph& graph, std::span<const OpCost> costs, const HostConstants& constants, double speed) {
  CHECK(costs.size() == graph.op_count(), "one cost per op is needed");
  CHECK(speed > 0, "host speed must be positive");
  HostCosts host;
  host.ops.reserve(graph.op_count());
  for (size_t i = 0; i < graph.op_count(); ++i) {
    host.ops.push_back(scaled(op_cost(graph, graph.ops()[i], costs[i].kernels, constants), speed));
  }
  host.per_iteration = scaled(constants.iteration + constants.parameter * parameter_tensors(graph), speed);
  return host;
}

}  // namespace forerun
