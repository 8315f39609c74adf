#include "predict/compiled.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "compile/compiled_iteration.h"
#include "derive/compile_support.h"
#include "derive/op_class.h"
#include "predict/predict.h"

namespace forerun {
namespace {

constexpr size_t kListed = 10;

Nanoseconds times(Nanoseconds time, double factor) {
  return Nanoseconds(std::llround(static_cast<double>(time.value) * factor));
}
Bytes bytes_of(const Graph& graph, const Op& op) {
  Bytes bytes;
  for (const TensorId id : graph.inputs(op)) bytes += graph.bytes_of(id);
  for (const TensorId id : graph.outputs(op)) bytes += graph.bytes_of(id);
  return bytes;
}

template <class Row>
void keep_largest(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.gpu > b.gpu; });
  if (rows.size() > kListed) rows.resize(kListed);
}

void add_ops(const TrainingRun& run, const std::vector<OpCost>& costs, CompiledPrediction& p) {
  const Graph& graph = run.graph;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    if (costs[i].kernels == 0) continue;
    const Op& op = graph.ops()[i];
    const Attributes& attributes = graph.attributes(op);
    p.ops.push_back({.phase = op.phase,
                     .inside = run.compiled->inside[i],
                     .name = graph.name(op),
                     .ops = attributes.get_string("ops"),
                     .module = graph.module(op),
                     .kernels = costs[i].kernels,
                     .gpu = costs[i].gpu,
                     .bytes = bytes_of(graph, op),
                     .elements = attributes.get_int("elements", 0),
                     .reduced = attributes.get_int("reduced", 0)});
  }
}

// Counts kernels, and puts those together that are alike.
void add_kernels(const TrainingRun& run, const std::vector<OpCost>& costs, CompiledPrediction& p) {
  const Graph& graph = run.graph;
  std::map<std::pair<std::string, int64_t>, FusedKernel> fused;  // by ops and bytes
  std::map<std::string, OutsideKernels> libraries;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    if (!run.compiled->inside[i]) continue;
    const std::string& name = graph.name(op);
    if (!compile::is_generated(name)) {
      OutsideKernels& row = libraries[name];
      row.name = name;
      ++row.count;
      row.gpu += costs[i].gpu;
      ++p.libraries;
      continue;
    }
    if (costs[i].kernels == 0) {  // part of a template
      ++p.templates;
      continue;
    }
    ++(name == compile::kReduction ? p.reductions : name == compile::kScatter ? p.scatters : p.pointwise);
    const std::string ops = graph.attributes(op).get_string("ops");
    const Bytes bytes = bytes_of(graph, op);
    p.generated += bytes;
    FusedKernel& row = fused[{ops, bytes.value}];
    if (row.count == 0) {
      row = {.kind = std::string(base_name(name)), .ops = ops, .module = graph.module(op), .gpu = {}, .bytes = bytes};
    }
    ++row.count;
    row.gpu += costs[i].gpu;
  }
  for (auto& [key, row] : fused) p.largest.push_back(std::move(row));
  for (auto& [key, row] : libraries) p.libraries_by_name.push_back(std::move(row));
  keep_largest(p.largest);
  keep_largest(p.libraries_by_name);
}

// Where the graph breaks, and who says so.
std::string tracing_of(const TrainingRun& run) {
  std::string text = "torch.compile(model) as PyTorch 2.11 does it, sizes fixed; ";
  const bool broken = !run.compiled->breaks.empty();
  if (run.dynamo != nullptr && run.dynamo->problem.empty()) {
    text += fmt::format("Dynamo of PyTorch {} traced the model where it was captured: ", run.dynamo->torch);
    return text + (broken ? "its graph breaks there, and each piece between is compiled alone"
                   : run.dynamo->graphs == 1
                       ? "in one piece"
                       : fmt::format("the {} parts that its author compiled", run.dynamo->graphs));
  }
  text += broken
              ? "its graph breaks where ops show that it must, and each piece between is compiled alone (Python code "
                "that breaks it further, such as a logger, does not show in the ops"
              : "Dynamo traces the model in one piece (Python code that breaks the graph, such as a logger, does not "
                "show in the ops";
  if (run.dynamo != nullptr) return text + "; Dynamo could not trace it: " + run.dynamo->problem + ")";
  return text + "; a capture with --compile has it)";
}

std::vector<std::string> assumptions_of(const TrainingRun& run) {
  const CompileMode mode = run.setup.compile;
  const bool loss_inside = run.compiled->loss_inside;
  std::vector<std::string> list = {
      tracing_of(run),
      loss_inside ? "the model computes its loss, which is compiled with it; the optimizer runs eagerly"
                  : "loss and optimizer run eagerly, outside of the compiled model",
      "attention runs by the kernel that the eager model takes, but for models of transformers, which mask it while "
      "they "
      "are traced: encoders leave the fused kernels, decoders compute what the mask hides",
  };
  if (tunes_products(mode)) {
    list.push_back(
        fmt::format("mode {} was {}: ranges are a quarter wider on both sides than those of modes that were "
                    "measured in many",
                    name_of(mode), launches_graphs(mode) ? "measured in four set-ups alone" : "never measured here"));
    list.push_back(fmt::format(
        "products run by templates, with the elementwise work that alone reads them, where those at {:g} of the "
        "library's speed take less time than both; what tuning gains elsewhere is not predicted, nor is the memory "
        "that is saved",
        kTemplateShare));
  } else {
    list.emplace_back("products are not tuned, and nothing is fused into them");
  }
  if (launches_graphs(mode)) {
    list.emplace_back(
        "forward and backward pass are one CUDA graph each: no inputs on the CPU, nothing in them waits for the GPU, "
        "or "
        "PyTorch leaves CUDA graphs out and the default mode holds");
    list.emplace_back(
        "CUDA graphs keep their memory in a pool of their own, gradients and copies of inputs among it; "
        "torch.cuda.max_memory_allocated() does not see what replayed graphs use");
  }
  if (run.setup.accumulate > 1) list.emplace_back("every micro-batch runs the same compiled graphs");
  return list;
}

}  // namespace

Result<TrainingRun> compiled_run(TrainingRun run, const Device& device) {
  if (run.setup.compile == CompileMode::none) return run;
  if (const Status status = derive::check_compile(run.setup, run.input, device); !status.ok()) return status.error();
  if (const Status status = compile::check_setup(run.setup); !status.ok()) return status.error();
  Result<compile::CompiledIteration> compiled = compile::compiled_iteration(
      run.graph, run.input.flavour == "hf", compile::autocast_of(run.setup.precision), run.dynamo.get());
  if (!compiled) return compiled.error();
  run.graph = std::move(compiled->graph);
  run.compiled = std::make_shared<const CompiledParts>(std::move(compiled->parts));
  return run;
}

Status check_compiled(const TrainingSetup& setup, const MemoryQuestion& question) {
  if (setup.compile == CompileMode::none || !question.parallel.any()) return {};
  return Error{"one of several GPUs is not predicted of a compiled model", "--ddp, --zero, --gpus",
               "leave them out, or leave out --compile"};
}

CompiledPrediction predict_compiled(const TrainingRun& run, const Device& device, const CostModels& cost_models,
                                    const MemoryQuestion& question) {
  const CompileMode mode = run.setup.compile;
  const CompileConstants& constants = cost_models.compile;
  const CompiledParts& parts = *run.compiled;
  CompiledPrediction p;
  std::vector<OpCost> costs;
  p.prediction = predict(run, device, cost_models, question, 2, &costs);
  const CompileRange range = range_in(mode, constants.gpu);
  p.gpu_low = times(p.prediction.times.gpu_busy, range.low);
  p.gpu_high = times(p.prediction.times.gpu_busy, range.high);
  add_kernels(run, costs, p);
  add_ops(run, costs, p);
  p.outside_host = outside_host(parts, host_costs(run.graph, costs, cost_models.host, host_speed(cost_models, run)));
  p.kept_values = parts.kept_values;
  p.kept = Bytes(parts.kept_bytes);
  p.computed_again = parts.computed_again;
  p.graphs = parts.graphs;
  p.breaks = parts.breaks;
  if (!tunes_products(mode) && parts.graphs > 0)
    p.compile_s = constants.start_s + constants.node_s * static_cast<double>(parts.nodes);
  p.assumptions = assumptions_of(run);
  return p;
}

}  // namespace forerun
