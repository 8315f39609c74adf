#include "scale/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scale/gradient_exchange.h"
#include "scale/pipeline.h"
#include "scale/step_parts.h"

namespace forerun::scale {
namespace {

double seconds(Nanoseconds time) { return static_cast<double>(time.value) * 1e-9; }

// Time and exchange of the passes of one device, all micro-batches.
void add_passes(const std::vector<Block>& held, const Plan& plan, Step& step) {
  for (const Block& block : held) {
    step.compute += (block.forward + block.backward) * plan.micro_batches;
    step.tensor_exchange += (block.forward_exchange + block.backward_exchange) * plan.micro_batches;
  }
}

// Times are whole nanoseconds of 64 bits, which hold 292 years: what is far within that is added up.
Status check_length(const PlanParts& parts, const Plan& plan) {
  constexpr double kLongest = 1e7;  // seconds
  double longest = 0;
  for (int64_t d = 0; d < plan.pipeline; ++d) {
    double micro_batch = 0;
    for (const Block& block : held_by(parts, plan, d)) micro_batch += seconds(forward_of(block) + backward_of(block));
    longest = std::max(longest, micro_batch * static_cast<double>(plan.micro_batches));
  }
  if (longest < kLongest) return {};
  return Error{fmt::format("a step of {} micro-batches would take {:.0f} days", plan.micro_batches, longest / 86400),
               "--global-batch", fmt::format("give a smaller one: a step may take {:.0f} days", kLongest / 86400)};
}

// Whether two GPUs exchange the same at the same times, as those in the middle of a pipeline do.
bool exchange_alike(const std::vector<Block>& a, const std::vector<Block>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Block& x, const Block& y) {
    return x.layer == y.layer && x.parameters == y.parameters && x.expert_parameters == y.expert_parameters &&
           forward_of(x) == forward_of(y) && backward_of(x) == backward_of(y);
  });
}

// The step of GPUs that share all work evenly and never wait for each other, memory aside.
Result<double> ideal_seconds(const CostSource& source, const Plan& plan) {
  auto alone = source({.micro_batch = plan.micro_batch});
  if (!alone) return alone.error();
  double passes = 0;
  int64_t parameters = 0;
  for (const Block& block : alone->blocks) {
    passes += seconds(block.forward + block.backward);
    parameters += block.parameters;
  }
  const double update = seconds(alone->update_fixed) + alone->update_ns * 1e-9 * static_cast<double>(parameters);
  const auto rounds = static_cast<double>(plan.data * plan.micro_batches);
  return (passes * rounds + update) / static_cast<double>(plan.gpus());
}

}  // namespace

void set_exchange(Step& step, Nanoseconds exchange, Nanoseconds exposed) {
  step.parts.communication += exposed - step.exposed;
  const double before = seconds(step.time);
  step.time += exposed - step.exposed;
  step.exposed = exposed;
  step.exchange = std::max(exchange, exposed);
  const double slower = seconds(step.time) / before;
  step.samples_per_second /= slower;
  step.tokens_per_second /= slower;
  step.model_flops_share /= slower;
  step.efficiency /= slower;
}

void set_passes(Step& step, Nanoseconds compute, Nanoseconds update) {
  const TimeParts before = step.parts;
  const Nanoseconds more = compute + update - step.compute - step.update;
  const double old = seconds(step.time), slower = (old + seconds(more)) / old;
  step.efficiency = (step.efficiency * old + seconds(more)) / (old + seconds(more));
  step.time += more;
  step.compute = compute;
  step.update = update;
  TimeParts passes = before;
  passes.communication = passes.bubble = Nanoseconds();
  step.parts = passes.of(compute + update);
  step.parts.communication = before.communication;
  step.parts.bubble = before.bubble;
  step.samples_per_second /= slower;
  step.tokens_per_second /= slower;
  step.model_flops_share /= slower;
}

Result<Step> estimate_step(const CostSource& source, const StepSetup& setup, const Plan& plan) {
  if (const Status status = check_plan(plan); !status) return status.error();
  const auto parts = parts_of(source, setup, plan);
  if (!parts) return parts.error();
  const ModelCosts& costs = parts->costs;
  if (const Status status = check_length(*parts, plan); !status) return status.error();
  const PipelineRun run = run_pipeline(parts->times, parts->shape, parts->hop);
  const Network network(setup.cluster, efficiency_of(setup, plan));

  Step step;
  step.plan = plan;
  std::vector<Block> before;
  Result<ExchangeTimes> sent = ExchangeTimes{};
  for (int64_t d = 0; d < plan.pipeline; ++d) {
    std::vector<Block> held = held_by(*parts, plan, d);
    if (d == 0 || !exchange_alike(held, before)) sent = exchange_among(held, plan, setup, network);
    if (!sent) return sent.error();
    const Nanoseconds update = update_of(costs, held, plan, setup);
    const Nanoseconds passed = run.device_end[static_cast<size_t>(d)];
    const Nanoseconds end = passed + sent->exposed + update;
    before = std::move(held);
    if (end <= step.time) continue;
    step.time = end;
    step.exchange = sent->exchange;
    step.exposed = sent->exposed;
    step.update = update;
    step.compute = Nanoseconds();
    step.tensor_exchange = Nanoseconds();
    add_passes(before, plan, step);
    step.bubble = std::max(passed - step.compute - step.tensor_exchange, Nanoseconds());
  }
  step.parts = costs.passes.of(step.compute);
  const TimeParts update = costs.update.total() > Nanoseconds() && !plan.offload
                               ? costs.update.of(step.update)
                               : TimeParts{.memory_access = step.update};
  step.parts.computation += update.computation;
  step.parts.memory_access += update.memory_access;
  step.parts.latency += update.latency;
  step.parts.idle += update.idle;
  step.parts.communication = step.exposed + step.tensor_exchange;
  step.parts.bubble = step.time - step.parts.total();
  step.memory = memory_of(costs.blocks, parts->stages, plan, setup.bytes);
  step.fits = step.memory.total() <= setup.cluster.gpu.memory;

  step.samples = plan.global_batch();
  step.samples_per_second = static_cast<double>(step.samples) / seconds(step.time);
  step.tokens_per_second = step.samples_per_second * static_cast<double>(costs.tokens_per_sample);
  step.model_flops_share = costs.peak_seconds * step.samples_per_second / static_cast<double>(plan.gpus());
  const Result<double> ideal = ideal_seconds(source, plan);
  if (!ideal) return ideal.error();
  step.efficiency = *ideal / seconds(step.time);
  step.computation = setup.computation;
  set_range(step, setup);
  return step;
}

}  // namespace forerun::scale
