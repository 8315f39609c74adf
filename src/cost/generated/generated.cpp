#include "cost/generated/generated.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <string>

#include "base/json_file.h"
#include "compile/compiled_iteration.h"
#include "compile/split_rule.h"
#include "cost/host/cuda_graph.h"
#include "cost/host/parameters_in_place.h"
#include "derive/op_class.h"
#include "graph/training_loop.h"

namespace forerun {
namespace {

GeneratedKind read_kind(JsonObject& kinds, const char* name) {
  JsonObject kind = kinds.object(name);
  const double share = kind.number("bandwidth_share", Sign::positive);
  return {.fixed = nanoseconds_from_us(kind.number("fixed_us", Sign::not_negative)),
          .bandwidth_share = share,
          .across_share = kind.number_or("across_share", share, Sign::positive),
          .step_ns = kind.number_or("step_ns", 0, Sign::not_negative),
          .row_ps = kind.number_or("row_ps", 0, Sign::not_negative),
          .element_ps = kind.number_or("element_ps", 0, Sign::not_negative),
          .statistics_ps = kind.number_or("statistics_ps", 0, Sign::not_negative)};
}

CompileRange read_range(JsonObject& ranges, const char* name) {
  JsonObject range = ranges.object(name);
  return {.low = range.number("low", Sign::positive), .high = range.number("high", Sign::positive)};
}

bool is_persistent(const Attributes& attributes) {
  const bool row = attributes.get_bool("inner", true) && attributes.get_bool("row", true);
  const int64_t most = row ? compile::kLongestPersistentRow : compile::kLongestPersistentColumn;
  return attributes.get_int("reduced", 1) <= most;
}

const GeneratedKind& kind_of(const CompileConstants& constants, std::string_view name, const Attributes& attributes) {
  if (name == compile::kReduction && attributes.get_bool("inner", true)) {
    if (is_persistent(attributes)) return constants.persistent;
    const bool short_row = attributes.get_int("reduced", 1) <= compile::kLongestPersistentRow;
    return short_row ? constants.looped_short : constants.looped;
  }
  if (name == compile::kReduction) {
    return is_persistent(attributes) ? constants.persistent_columns : constants.looped_columns;
  }
  return name == compile::kScatter ? constants.scatter : constants.pointwise;
}

}  // namespace

Result<CompileConstants> load_compile_constants(const std::filesystem::path& path) {
  Result<JsonObject> file = JsonObject::read(path);
  if (!file.ok()) return file.error();
  if (const std::string format = file->text("format"); format != "compile-kernels/5") {
    file->fail("format", "unknown format \"" + format + "\"", "known is compile-kernels/5");
  }
  CompileConstants constants;
  JsonObject kinds = file->object("kernels");
  constants.pointwise = read_kind(kinds, "pointwise");
  constants.persistent = read_kind(kinds, "persistent");
  constants.persistent_columns = read_kind(kinds, "persistent_columns");
  constants.looped = read_kind(kinds, "looped");
  constants.looped_short = read_kind(kinds, "looped_short");
  constants.looped_columns = read_kind(kinds, "looped_columns");
  constants.scatter = read_kind(kinds, "scatter");
  JsonObject arithmetic = file->object("arithmetic_ps");
  constants.arithmetic = {.element = arithmetic.number("element", Sign::not_negative),
                          .random = arithmetic.number("random", Sign::not_negative),
                          .erf = arithmetic.number("erf", Sign::not_negative),
                          .exp = arithmetic.number("exp", Sign::not_negative),
                          .trig = arithmetic.number("trig", Sign::not_negative),
                          .norm = arithmetic.number("norm", Sign::not_negative),
                          .look = arithmetic.number("look", Sign::not_negative),
                          .look_back = arithmetic.number("look_back", Sign::not_negative),
                          .add = arithmetic.number("add", Sign::not_negative),
                          .apart = arithmetic.number("apart", Sign::not_negative),
                          .often = arithmetic.number("often", Sign::not_negative),
                          .often_narrow = arithmetic.number("often_narrow", Sign::not_negative),
                          .crowded = arithmetic.number("crowded", Sign::not_negative)};
  constants.masked_attention = file->number("masked_attention", Sign::positive);
  JsonObject host = file->object("host_us");
  constants.host_kernel = nanoseconds_from_us(host.number("kernel", Sign::not_negative));
  constants.host_library = nanoseconds_from_us(host.number("library", Sign::not_negative));
  constants.host_attention = nanoseconds_from_us(host.number("attention", Sign::not_negative));
  constants.host_convolution = nanoseconds_from_us(host.number("convolution", Sign::not_negative));
  constants.host_convolution_backward = nanoseconds_from_us(host.number("convolution_backward", Sign::not_negative));
  constants.host_graph = nanoseconds_from_us(host.number("graph", Sign::not_negative));
  constants.host_parameter = nanoseconds_from_us(host.number("parameter", Sign::not_negative));
  JsonObject compiling = file->object("compiling_s");
  constants.start_s = compiling.number("start", Sign::not_negative);
  constants.node_s = compiling.number("node", Sign::not_negative);
  JsonObject ranges = file->object("ranges");
  constants.gpu = read_range(ranges, "gpu");
  constants.iteration = read_range(ranges, "gpu_bound");
  constants.host_bound = read_range(ranges, "host_bound");
  constants.allocated = read_range(ranges, "allocated");
  constants.captured_allocated = read_range(ranges, "captured_allocated");
  if (!file->status().ok()) return file->status().error();
  return constants;
}

CompileRange range_in(CompileMode mode, const CompileRange& measured) {
  if (!tunes_products(mode)) return measured;
  return {.low = measured.low / kHardlyMeasured, .high = measured.high * kHardlyMeasured};
}

namespace {

double moved_bytes(const Graph& graph, std::span<const TensorId> tensors) {
  double bytes = 0;
  for (const TensorId id : tensors) bytes += static_cast<double>(graph.bytes_of(id).value);
  return bytes;
}

// What does not hide behind memory (special functions, integer products) every multiprocessor has at the same rate a clock, from Volta on.
constexpr double kMeasuredClocks = 132 * 1980.0;  // multiprocessors x MHz of the H200 that was measured

double slowness(const Device& device) {
  const double clocks = static_cast<double>(device.sm_count) * device.clock_mhz;
  return clocks > 0 ? kMeasuredClocks / clocks : 1;
}

// Nanoseconds that a kernel computes.
double computing(const Attributes& attributes, bool whole_rows, const Device& device, const ArithmeticCosts& costs) {
  const auto count = [&](const char* what) { return static_cast<double>(attributes.get_int(what, 0)); };
  const double each = costs.element + count("random") * costs.random + count("erf") * costs.erf +
                      count("exp") * costs.exp + count("trig") * costs.trig + count("norms") * costs.norm +
                      count("looks") * costs.look + count("looks_back") * costs.look_back;
  auto row = static_cast<uint64_t>(std::max<int64_t>(attributes.get_int("reduced", 1), 1));
  if (whole_rows) row = std::bit_ceil(row);
  const double elements = count("elements") * static_cast<double>(row);
  const double added = count("adds") * costs.add + count("apart") * costs.apart + count("often") * costs.often +
                       count("often_narrow") * costs.often_narrow + count("crowded") * costs.crowded;
  return (elements * each * slowness(device) + added) * 1e-3;
}

// Nanoseconds in which threads hand each other what they added up of whole rows.
double adding_rows(const Attributes& attributes, const GeneratedKind& kind, const Device& device) {
  constexpr double kThreads = 64;
  const auto row = static_cast<uint64_t>(std::max<int64_t>(attributes.get_int("reduced", 1), 1));
  const double share = std::min(static_cast<double>(std::bit_ceil(row)) / kThreads, 1.0);
  return static_cast<double>(attributes.get_int("elements", 0)) * share * kind.row_ps * slowness(device) * 1e-3;
}

// Nanoseconds of loops over short rows, which are begun more than once.
double looping(const Attributes& attributes, const GeneratedKind& kind, const Device& device) {
  const double elements =
      static_cast<double>(attributes.get_int("elements", 0)) * static_cast<double>(attributes.get_int("reduced", 1));
  return elements * kind.element_ps * slowness(device) * 1e-3;
}

// Of mean and variance, one element after the other: nothing of it that moving the bytes takes longer than is seen.
double taking_statistics(const Attributes& attributes, const GeneratedKind& kind, const Device& device) {
  if (attributes.get_int("statistics", 0) == 0) return 0;
  const double elements =
      static_cast<double>(attributes.get_int("elements", 0)) * static_cast<double>(attributes.get_int("reduced", 1));
  return elements * kind.statistics_ps * slowness(device) * 1e-3;
}

void cost_generated(const Graph& graph, const Device& device, const CompileConstants& constants,
                    std::vector<OpCost>& costs) {
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    if (!compile::is_generated(graph.name(op))) continue;
    const Attributes& attributes = graph.attributes(op);
    const double bytes = moved_bytes(graph, graph.inputs(op)) + moved_bytes(graph, graph.outputs(op));
    const GeneratedKind& kind = kind_of(constants, graph.name(op), attributes);
    const bool reduces = graph.name(op) == compile::kReduction;
    const bool whole_rows = reduces && is_persistent(attributes);
    const double across = std::min(static_cast<double>(attributes.get_int("across", 0)), bytes);
    const double straight = (bytes - across) / kind.bandwidth_share + across / kind.across_share;
    const double moving = straight / device.memory_bandwidth * 1e9;
    const double arithmetic = computing(attributes, whole_rows, device, constants.arithmetic);
    const double steps = reduces ? static_cast<double>(attributes.get_int("reduced", 1)) * kind.step_ns : 0;
    const double rows = whole_rows ? adding_rows(attributes, kind, device) : looping(attributes, kind, device);
    const double busiest = std::max(moving, taking_statistics(attributes, kind, device));
    const double work = std::hypot(busiest, arithmetic, std::hypot(steps, rows));
    const Bound busy = arithmetic > moving ? Bound::compute : Bound::memory;
    costs[i] = {.gpu = kind.fixed + Nanoseconds(std::llround(work)),
                .overlapped = {},
                .kernels = 1,
                .measured = true,
                .bound = work > static_cast<double>(kind.fixed.value) ? busy : Bound::latency};
  }
}

// What cuDNN's attention reads without a mask: query, key, value; on the way back gradient, result, sums, seed and offset too.
constexpr size_t kUnmaskedInputs = 3;
constexpr size_t kUnmaskedBackwardInputs = 8;

void cost_masks(const Graph& graph, const CompiledParts& parts, double factor, std::vector<OpCost>& costs) {
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    const std::string& name = graph.name(op);
    if (!parts.inside[i] || !name.starts_with("aten._scaled_dot_product_cudnn_attention")) continue;
    const size_t unmasked = is_backward(name) ? kUnmaskedBackwardInputs : kUnmaskedInputs;
    if (op.input_count > unmasked) {
      costs[i].gpu = Nanoseconds(std::llround(factor * static_cast<double>(costs[i].gpu.value)));
    }
  }
}

bool is_product(const std::string& name) {
  return name == "aten.mm.default" || name == "aten.addmm.default" || name == "aten.bmm.default";
}

constexpr size_t kNobody = SIZE_MAX;

// By op: the one op that reads what a product made, where it is all that does.
class Readers {
 public:
  Readers(const Graph& graph, const std::vector<bool>& inside)
      : writer_(graph.storages().size(), kNobody),
        reader_(graph.op_count(), kNobody),
        count_(graph.op_count()),
        others_(graph.op_count(), kNobody) {
    for (size_t i = 0; i < graph.op_count(); ++i) {
      const Op& op = graph.ops()[i];
      for (const TensorId id : graph.inputs(op)) note(i, writer_[graph.tensor(id).storage.value]);
      for (const TensorId id : graph.outputs(op)) writer_[graph.tensor(id).storage.value] = inside[i] ? i : kNobody;
    }
  }

  [[nodiscard]] size_t of(size_t op) const { return count_[op] == 1 ? reader_[op] : kNobody; }
  // Whether all that `reader` reads beside the product was there before it.
  [[nodiscard]] bool rest_is_there(size_t product, size_t reader) const {
    return others_[reader] == kNobody || others_[reader] <= product;
  }

 private:
  void note(size_t reader, size_t writer) {
    if (writer == kNobody || reader_[writer] == reader) return;
    reader_[writer] = reader;
    ++count_[writer];
    if (others_[reader] == kNobody || writer > others_[reader]) others_[reader] = writer;
  }

  std::vector<size_t> writer_;  // by storage: the op that wrote it last
  std::vector<size_t> reader_;
  std::vector<int> count_;
  std::vector<size_t> others_;  // by op: the last of those that made what it reads
};

// Products whose only reader is elementwise become one kernel with it, where that is faster than both.
void cost_templates(const Graph& graph, const CompiledParts& parts, const Device& device,
                    const CompileConstants& constants, std::vector<OpCost>& costs) {
  const Readers readers(graph, parts.inside);
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    if (!parts.inside[i] || !is_product(graph.name(op)) || op.output_count != 1) continue;
    const TensorId product = graph.outputs(op)[0];
    const size_t next = readers.of(i);
    // What lives on is read by somebody later.
    if (next == kNobody || !graph.storage(graph.tensor(product).storage).freed_before.valid()) continue;
    const Op& reader = graph.ops()[next];
    const bool joins = graph.name(reader) == compile::kPointwise && costs[next].kernels > 0 &&
                       reader.phase == op.phase && readers.rest_is_there(i, next) &&
                       graph.attributes(reader).get_int("elements", 0) == graph.element_count(product);
    if (!joins) continue;
    const double own = static_cast<double>(graph.bytes_of(product).value);
    const double rest = moved_bytes(graph, graph.inputs(reader)) + moved_bytes(graph, graph.outputs(reader)) - 2 * own;
    const double moving = std::max(rest, 0.0) / (constants.pointwise.bandwidth_share * device.memory_bandwidth) * 1e9;
    const auto fused = Nanoseconds(std::llround(static_cast<double>(costs[i].gpu.value) / kTemplateShare + moving));
    if (fused >= costs[i].gpu + costs[next].gpu) continue;
    costs[i].gpu = fused;
    costs[i].measured = false;
    costs[next] = {};
  }
}

// A graph reads where it read when it was captured: what it is given is copied there first, by one kernel.
void cost_copies(const Graph& graph, const CompiledParts& parts, const Device& device,
                 const CompileConstants& constants, std::vector<OpCost>& costs) {
  for (const CompiledParts::Pass& pass : parts.passes) {
    if (pass.given.empty()) continue;
    double bytes = 0;
    for (const StorageId storage : pass.given) bytes += static_cast<double>(graph.storage(storage).bytes.value);
    const double moving = 2 * bytes / (constants.pointwise.bandwidth_share * device.memory_bandwidth) * 1e9;
    OpCost& first = costs[pass.first.value];
    first.gpu += constants.pointwise.fixed + Nanoseconds(std::llround(moving));
    ++first.kernels;
  }
}

}  // namespace

void cost_compiled(const Graph& graph, const CompiledParts& parts, CompileMode mode, const Device& device,
                   const CompileConstants& constants, std::vector<OpCost>& costs) {
  cost_generated(graph, device, constants, costs);
  cost_masks(graph, parts, constants.masked_attention, costs);
  if (tunes_products(mode)) cost_templates(graph, parts, device, constants, costs);
  if (!launches_graphs(mode)) return;
  cost_copies(graph, parts, device, constants, costs);
  for (size_t i = 0; i < costs.size(); ++i) costs[i].captured = parts.inside[i];
}

namespace {

Nanoseconds host_of(const std::string& name, const CompileConstants& constants) {
  if (compile::is_generated(name)) return constants.host_kernel;
  const OpClass cls = op_class(name);
  if (cls == OpClass::attention) return constants.host_attention;
  if (cls != OpClass::convolution) return constants.host_library;
  return is_backward(name) ? constants.host_convolution_backward : constants.host_convolution;
}

}  // namespace

HostConstants compiled_host(HostConstants constants, const CompiledParts& parts, const CompileConstants& compiled) {
  if (!parts.passes.empty()) constants.parameter = compiled.host_parameter;
  return constants;
}

void cost_compiled_host(const Graph& graph, const CompiledParts& parts, CompileMode mode,
                        const std::vector<OpCost>& costs, const CompileConstants& constants, double speed,
                        HostCosts& host) {
  const auto scaled = [speed](Nanoseconds cost) {
    return Nanoseconds(std::llround(static_cast<double>(cost.value) / speed));
  };
  for (const CompiledParts::Pass& pass : parts.passes) {
    int64_t kernels = 0;
    for (size_t i = pass.first.value; i < pass.end.value; ++i) {
      kernels += costs[i].kernels;
      const bool launched = costs[i].kernels > 0 && !launches_graphs(mode);
      host.ops[i] = launched ? scaled(host_of(graph.name(graph.ops()[i]), constants)) : Nanoseconds();
    }
    host.ops[pass.first.value] += scaled(constants.host_graph);
    if (launches_graphs(mode)) {
      host.ops[pass.first.value] +=
          scaled(constants.host_library + cuda_graph_launch(kernels));  // the copy, the launch
    }
  }
}

HostCosts issue_costs(const Graph& graph, const TrainingSetup& setup, const CompiledParts* parts,
                      const std::vector<OpCost>& costs, const HostConstants& constants,
                      const CompileConstants& compiled, double speed) {
  const HostConstants used = parts == nullptr ? constants : compiled_host(constants, *parts, compiled);
  HostCosts host = host_costs(graph, costs, used, speed);
  if (host_waits(graph, rules_of(setup.loop))) host = parameters_in_place(graph, std::move(host), used, speed);
  if (parts != nullptr) cost_compiled_host(graph, *parts, setup.compile, costs, compiled, speed, host);
  return host;
}

Nanoseconds outside_host(const CompiledParts& parts, const HostCosts& host) {
  Nanoseconds outside = host.per_iteration + host.loop;
  for (size_t i = 0; i < host.ops.size(); ++i) {
    if (!parts.inside[i]) outside += host.ops[i];
  }
  return outside;
}

}  // namespace forerun
