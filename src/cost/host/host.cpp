#include "cost/host/host.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/json_file.h"
#include "base/json_writer.h"
#include "base/line_writer.h"
#include "cost/host/parameters_in_place.h"
#include "derive/work.h"

namespace forerun {
namespace {

// Parameters as autograd sees them: each has one accumulation of its gradient, as one op or as an allocation and a copy.
NameId accumulation(const Graph& graph) { return graph.names().find("torch::autograd::AccumulateGrad"); }

bool accumulates(const Graph& graph, const Op& op, NameId accumulation) {
  return op.autograd_node == accumulation && graph.name(op) != "aten.new_empty_strided.default";
}

int64_t parameter_tensors(const Graph& graph) {
  const NameId node = accumulation(graph);
  if (!node.valid()) return 0;
  return std::count_if(graph.ops().begin(), graph.ops().end(),
                       [&](const Op& op) { return accumulates(graph, op, node); });
}

// The classes of a graph's ops, each name looked up once.
class OpClasses {
 public:
  explicit OpClasses(const Graph& graph) : graph_(graph), known_(graph.names().size()) {}
  OpClass of(const Op& op) {
    std::optional<OpClass>& known = known_[op.name.value];
    if (!known) known = op_class(graph_.name(op));
    return *known;
  }

 private:
  const Graph& graph_;
  std::vector<std::optional<OpClass>> known_;  // by name
};

bool is_on_host(const Graph& graph, const Op& op) {
  const auto results = graph.outputs(op).empty() ? graph.inputs(op) : graph.outputs(op);
  return !results.empty() && !graph.storage(graph.tensor(results[0]).storage).on_gpu;
}

// The phase whose costs an op has: what the model's own code issues costs more than what autograd does. A block that is
// checkpointed runs its code again in the backward pass, within its modules and in no node of autograd.
Phase issuing_phase(const Graph& graph, const Op& op) {
  const bool again =
      op.phase == Phase::backward && graph.names()[op.autograd_node].empty() && !graph.module(op).empty();
  return again ? Phase::forward : op.phase;
}

// Adds what one op asks of the host.
void count_op(const Graph& graph, const Op& op, OpClass cls, int64_t kernels, HostCounts& counts) {
  const std::string& name = graph.name(op);
  if (name.starts_with("profiler.")) {
    ++counts.marks;
    return;
  }
  if (cls == OpClass::optimizer) {
    const int64_t inputs = static_cast<int64_t>(op.input_count);
    const int64_t lists = foreach_lists(name, inputs, graph.attributes(op).get_bool("amsgrad", false));
    counts.foreach_tensors += inputs / std::max<int64_t>(1, lists);
  } else if (is_on_host(graph, op)) {
    ++counts.host_ops;
    return;
  }
  ++counts.op[static_cast<size_t>(issuing_phase(graph, op))][static_cast<size_t>(cls)];
  counts.further_kernels += std::max<int64_t>(0, kernels - 1);
}

Nanoseconds op_cost(const Graph& graph, const Op& op, OpClass cls, int kernels, const HostConstants& constants) {
  HostCounts counts;
  count_op(graph, op, cls, kernels, counts);
  Nanoseconds cost = constants.mark * counts.marks + constants.host_op * counts.host_ops +
                     constants.further_kernel * counts.further_kernels +
                     constants.foreach_tensor * counts.foreach_tensors;
  if (counts.marks + counts.host_ops == 0) cost += constants.of(issuing_phase(graph, op), cls);
  return cost;
}

Nanoseconds scaled(Nanoseconds cost, double speed) {
  return Nanoseconds(std::llround(static_cast<double>(cost.value) / speed));
}

std::vector<ScaleReading> scale_readings(JsonObject& scale, const std::string& field) {
  std::vector<ScaleReading> readings;
  JsonObject kinds = scale.object(field);
  for (const std::string& kind : kinds.keys()) {
    JsonObject reading = kinds.object(kind);
    readings.push_back({kind, reading.number("reference_us"), reading.number("weight", Sign::not_negative)});
  }
  return readings;
}

}  // namespace

Result<HostConstants> load_host_constants(const std::filesystem::path& path) {
  Result<JsonObject> file = JsonObject::read(path);
  if (!file.ok()) return file.error();
  const std::string format = file->text("format");
  if (format != "host/2") file->fail("format", "unknown format \"" + format + "\"", "known is host/2");
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
  constants.scale.at_reference = scale.number("at_reference");
  constants.scale.forward = scale_readings(scale, "forward");
  constants.scale.backward = scale_readings(scale, "backward");
  if (!file->status().ok()) return file->status().error();
  return constants;
}

Result<HostScale> load_host_scale(const std::filesystem::path& path) {
  Result<JsonObject> file = JsonObject::read(path);
  if (!file.ok()) return file.error();
  const std::string format = file->text("format");
  if (format != "host_scale/1") file->fail("format", "unknown format \"" + format + "\"", "known is host_scale/1");
  HostScale scale;
  scale.at_reference = file->number("at_reference");
  scale.forward = scale_readings(*file, "forward");
  scale.backward = scale_readings(*file, "backward");
  if (!file->status().ok()) return file->status().error();
  return scale;
}

Result<LoopCosts> load_loop_costs(const std::filesystem::path& path) {
  Result<JsonObject> file = JsonObject::read(path);
  if (!file.ok()) return file.error();
  if (const std::string format = file->text("format"); format != "loops/1") {
    file->fail("format", "unknown format \"" + format + "\"", "known is loops/1");
  }
  LoopCosts costs;
  JsonObject batches = file->object("batch_us");
  for (size_t i = 0; i < kTrainingLoops; ++i) {
    const std::string name(name_of(static_cast<TrainingLoop>(i)));
    costs.batch[i] = nanoseconds_from_us(batches.number(name, Sign::not_negative));
  }
  if (!file->status().ok()) return file->status().error();
  return costs;
}

Status save_host_constants(const HostConstants& constants, const std::filesystem::path& path) {
  const auto us = [](Nanoseconds cost) { return std::round(microseconds(cost) * 1000) / 1000; };
  JsonWriter json(2);
  json.begin_object().field("format", "host/2");
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::update}) {
    json.key(std::string(name_of(phase)) + "_op_us").begin_object();
    for (size_t i = 0; i < kOpClassCount; ++i) {
      const auto cls = static_cast<OpClass>(i);
      json.field(name_of(cls), us(constants.of(phase, cls)));
    }
    json.end_object();
  }
  json.field("host_op_us", us(constants.host_op));
  json.field("mark_us", us(constants.mark));
  json.field("further_kernel_us", us(constants.further_kernel));
  json.field("foreach_tensor_us", us(constants.foreach_tensor));
  json.field("parameter_us", us(constants.parameter));
  json.field("iteration_us", us(constants.iteration));
  const auto readings = [&](std::string_view name, const std::vector<ScaleReading>& list) {
    json.key(name).begin_object();
    for (const ScaleReading& reading : list) {
      json.key(reading.kind).begin_object();
      json.field("reference_us", reading.reference_us).field("weight", reading.weight).end_object();
    }
    json.end_object();
  };
  json.key("calibration").begin_object().field("at_reference", constants.scale.at_reference);
  readings("forward", constants.scale.forward);
  readings("backward", constants.scale.backward);
  json.end_object().end_object();
  Result<LineWriter> writer = LineWriter::create(path.string(), {.overwrite = true});
  if (!writer) return writer.error();
  if (Status written = writer->write(json.take()); !written.ok()) return written;
  return writer->finish();
}

std::optional<double> host_slowness(const HostScale& scale, const HostCalibration& calibration) {
  double sum = std::log(scale.at_reference);
  bool whole = scale.forward.size() + scale.backward.size() > 0;
  const auto add = [&](const std::vector<ScaleReading>& wanted, const auto& readings) {
    for (const ScaleReading& reading : wanted) {
      const auto found = std::find_if(readings.begin(), readings.end(),
                                      [&](const auto& taken) { return taken.first == reading.kind; });
      if (found == readings.end() || !(found->second > 0)) {
        whole = false;
        return;
      }
      sum += reading.weight * std::log(found->second / reading.reference_us);
    }
  };
  add(scale.forward, calibration.forward);
  add(scale.backward, calibration.backward);
  if (!whole) return std::nullopt;
  return std::exp(sum);
}

double host_speed(const HostConstants& constants, const HostCalibration& calibration) {
  return 1 / host_slowness(constants.scale, calibration).value_or(1);
}

HostCounts host_counts(const Graph& graph, std::span<const uint32_t> kernels) {
  CHECK(kernels.size() == graph.op_count(), "a number of kernels per op is needed");
  HostCounts counts;
  OpClasses classes(graph);
  for (size_t i = 0; i < graph.op_count(); ++i) {
    count_op(graph, graph.ops()[i], classes.of(graph.ops()[i]), kernels[i], counts);
  }
  counts.parameters = parameter_tensors(graph);
  return counts;
}

Nanoseconds host_cost(const HostCounts& counts, const HostConstants& constants) {
  Nanoseconds sum = constants.iteration + constants.parameter * counts.parameters +
                    constants.host_op * counts.host_ops + constants.mark * counts.marks +
                    constants.further_kernel * counts.further_kernels +
                    constants.foreach_tensor * counts.foreach_tensors;
  for (size_t phase = 0; phase < counts.op.size(); ++phase) {
    for (size_t cls = 0; cls < kOpClassCount; ++cls) sum += constants.op[phase][cls] * counts.op[phase][cls];
  }
  return sum;
}

Nanoseconds HostCosts::total() const {
  Nanoseconds sum = per_iteration + loop;
  for (const Nanoseconds cost : ops) sum += cost;
  return sum;
}

HostCosts host_costs(const Graph& graph, std::span<const OpCost> costs, const HostConstants& constants, double speed) {
  CHECK(costs.size() == graph.op_count(), "one cost per op is needed");
  CHECK(speed > 0, "host speed must be positive");
  HostCosts host;
  host.ops.reserve(graph.op_count());
  OpClasses classes(graph);
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    host.ops.push_back(scaled(op_cost(graph, op, classes.of(op), costs[i].kernels, constants), speed));
  }
  host.per_iteration = scaled(constants.iteration + constants.parameter * parameter_tensors(graph), speed);
  return host;
}

namespace {

constexpr std::array<std::string_view, 5> kChoosing = {"nonzero", "masked_select", "_unique2", "unique_dim",
                                                       "unique_consecutive"};
constexpr std::array<std::string_view, 4> kIndexing = {"index", "index_put", "index_put_", "_index_put_impl_"};
constexpr std::string_view kGrouped = "_grouped_mm", kScalar = "_local_scalar_dense";

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool ValueReads::may(const Op& op) {
  May& known = may_[op.name.value];
  if (known == May::unknown) {
    const std::string_view base = base_name(graph_.name(op));
    const bool may = is_among(kChoosing, base) || is_among(kIndexing, base) || base == kGrouped || base == kScalar;
    known = may ? May::yes : May::no;
  }
  return known == May::yes;
}

bool chooses_by_value(const Graph& graph, const Op& op) {
  const std::string_view base = base_name(graph.name(op));
  if (is_among(kChoosing, base)) return true;
  if (!is_among(kIndexing, base)) return false;
  const auto inputs = graph.inputs(op);
  return std::any_of(inputs.begin() + (inputs.empty() ? 0 : 1), inputs.end(),
                     [&](TensorId input) { return graph.tensor(input).dtype == DType::boolean; });
}

bool reads_from_gpu(const Graph& graph, const Op& op) {
  const auto inputs = graph.inputs(op);
  if (inputs.empty() || !graph.storage(graph.tensor(inputs[0]).storage).on_gpu) return false;
  const std::string_view base = base_name(graph.name(op));
  // Grouped products in types other than bfloat16 run one by one: the host reads where each begins.
  if (base == kGrouped) return graph.tensor(inputs[0]).dtype != DType::bfloat16;
  return base == kScalar || chooses_by_value(graph, op);
}

bool host_waits(const Graph& graph, const LoopRules& rules) {
  if (rules.waits_for_batch || rules.waits_for_loss) return true;
  ValueReads values(graph);
  return std::any_of(graph.ops().begin(), graph.ops().end(), [&](const Op& op) { return values.reads(op); });
}

HostCosts parameters_in_place(const Graph& graph, HostCosts host, const HostConstants& constants, double speed) {
  CHECK(host.ops.size() == graph.op_count(), "one cost per op is needed");
  const NameId node = accumulation(graph);
  if (!node.valid()) return host;
  const Nanoseconds each = scaled(constants.parameter, speed);
  for (size_t i = 0; i < graph.op_count(); ++i) {
    if (!accumulates(graph, graph.ops()[i], node)) continue;
    host.ops[i] += each;
    host.per_iteration -= each;
  }
  host.per_iteration = std::max(host.per_iteration, Nanoseconds());
  return host;
}

Nanoseconds loop_cost(const TrainingSetup& setup, const LoopCosts& costs, double speed) {
  return scaled(costs.batch[static_cast<size_t>(setup.loop)] * setup.accumulate, speed);
}

}  // namespace forerun
