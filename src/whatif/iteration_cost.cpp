#include "whatif/iteration_cost.h"

#include <charconv>
#include <unordered_map>

#include "compile/compiled_iteration.h"
#include "derive/compile_support.h"
#include "derive/iteration.h"

namespace forerun::whatif {
namespace {

// By the model's table, or "12" -> 12; `calls` elsewhere.
uint32_t call_number(const TracedModel& model, const std::string& module) {
  if (const auto known = model.modules.find(module); known != model.modules.end()) return known->second;
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(module.data(), module.data() + module.size(), number);
  return error == std::errc() && number < model.calls ? number : model.calls;
}

// The ops alone, compiled where the setup says so.
Result<DerivedIteration> iteration_of(const TracedModel& model, double batch_factor, const TrainingSetup& setup,
                                      const OpTimer& timer) {
  DerivedIteration made;
  if (model.iteration) {
    TrainingSetup eager = setup;
    eager.compile = model.setup.compile;
    if (eager != model.setup) {
      return Error{"a capture is taken as it was recorded, with its precision, optimizer, layout and loop", model.name,
                   "capture the model again with those"};
    }
    auto run = model.iteration(batch_factor, timer.device(), setup.compile);
    if (!run) return run.error();
    made.graph = std::move(run->graph);
    made.compiled = std::move(run->compiled);
    return made;
  }
  const auto forward = model.forward(batch_factor);
  if (!forward) return forward.error();
  auto graph =
      derive::derive_iteration(*forward, model.input, setup, derive::target_of(timer.device(), setup, model.input));
  if (!graph) return graph.error();
  made.graph = std::move(*graph);
  if (setup.compile == CompileMode::none) return made;
  if (const Status status = derive::check_compile(setup, model.input, timer.device()); !status.ok()) {
    return status.error();
  }
  if (const Status status = compile::check_setup(setup); !status.ok()) return status.error();
  auto compiled =
      compile::compiled_iteration(made.graph, model.input.flavour == "hf", compile::autocast_of(setup.precision));
  if (!compiled) return compiled.error();
  made.graph = std::move(compiled->graph);
  made.compiled = std::make_shared<const CompiledParts>(std::move(compiled->parts));
  return made;
}

}  // namespace

Result<DerivedIteration> derived_iteration(const TracedModel& model, double batch_factor, const TrainingSetup& setup,
                                           const OpTimer& timer) {
  if (setup.compile != CompileMode::none && !timer.compile()) {
    return Error{"the costs of compiled models are not there", "data folder", "keep data/compile"};
  }
  auto derived = iteration_of(model, batch_factor, setup, timer);
  if (!derived) return derived.error();
  DerivedIteration made = std::move(*derived);
  made.costs = timer.costs(made.graph, setup);
  if (made.compiled) {
    cost_compiled(made.graph, *made.compiled, setup.compile, timer.device(), *timer.compile(), made.costs);
  }
  made.host.ops.resize(made.graph.op_count());
  if (timer.host()) {
    made.host = issue_costs(made.graph, setup, made.compiled ? &*made.compiled : nullptr, made.costs, *timer.host(),
                            timer.compile() ? *timer.compile() : CompileConstants(), timer.host_speed());
    made.host.loop = loop_cost(setup, timer.loops(), timer.host_speed());
  }
  std::unordered_map<uint32_t, uint32_t> call_of;  // by sequence number
  for (const Op& op : made.graph.ops()) {
    uint32_t call = call_number(model, made.graph.module(op));
    if (op.phase == Phase::forward) {
      if (op.sequence != 0) call_of.try_emplace(op.sequence, call);
    } else if (const auto known = call_of.find(op.sequence); known != call_of.end()) {
      call = known->second;
    }
    made.calls.push_back(call);
  }
  return made;
}

LaneCost IterationCost::phase(size_t backward) const {
  LaneCost sum;
  for (const auto& call : calls) {
    sum.gpu += call[backward].gpu;
    sum.host += call[backward].host;
  }
  return sum;
}

Result<IterationCost> iteration_cost(const TracedModel& model, double batch_factor, const TrainingSetup& setup,
                                     const OpTimer& timer) {
  const auto derived = derived_iteration(model, batch_factor, setup, timer);
  if (!derived) return derived.error();
  IterationCost sum;
  sum.calls.resize(model.calls + 1);
  sum.per_iteration = static_cast<double>(derived->host.per_iteration.value);
  for (size_t i = 0; i < derived->graph.op_count(); ++i) {
    const Phase phase = derived->graph.ops()[i].phase;
    LaneCost& at = phase == Phase::update ? sum.update : sum.calls[derived->calls[i]][phase == Phase::backward ? 1 : 0];
    at.gpu += static_cast<double>(derived->costs[i].gpu.value);
    at.host += static_cast<double>(derived->host.ops[i].value);
  }
  return sum;
}

}  // namespace forerun::whatif
