#include "scale/step.h"

#include <algorithm>
#include <cmath>

#include "scale/gradient_exchange.h"
#include "scale/pipeline.h"
#include "scale/stages.h"

namespace forerun::scale {
namespace {

double seconds(Nanoseconds time) { return static_cast<double>(time.value) * 1e-9; }

// What one GPU of each device of the pipeline holds.
std::vector<Block> held_by(const std::vector<Block>& blocks, const std::vector<BlockRange>& stages, const Plan& plan,
                           int64_t device) {
  std::vector<Block> held;
  for (int64_t chunk = 0; chunk < plan.chunks; ++chunk) {
    const BlockRange& range = stages[static_cast<size_t>(chunk * plan.pipeline + device)];
    held.insert(held.end(), blocks.begin() + static_cast<std::ptrdiff_t>(range.begin),
                blocks.begin() + static_cast<std::ptrdiff_t>(range.end));
  }
  return held;
}

std::vector<StageTimes> times_of(const std::vector<Block>& blocks, const std::vector<BlockRange>& stages,
                                 const Plan& plan) {
  std::vector<StageTimes> times;
  for (const BlockRange& range : stages) {
    StageTimes stage;
    for (size_t i = range.begin; i < range.end; ++i) {
      stage.forward += forward_of(blocks[i]);
      stage.backward += backward_of(blocks[i], plan.checkpoint);
    }
    times.push_back(stage);
  }
  return times;
}

Nanoseconds update_of(const ModelCosts& costs, const std::vector<Block>& held, const Plan& plan) {
  int64_t parameters = 0;
  for (const Block& block : held) parameters += block.parameters;
  const double share = plan.zero > 0 ? static_cast<double>(plan.data) : 1;
  return costs.update_fixed + Nanoseconds(std::llround(costs.update_ns * static_cast<double>(parameters) / share));
}

// Time and exchange of the passes of one device, all micro-batches.
void add_passes(const std::vector<Block>& held, const Plan& plan, Step& step) {
  for (const Block& block : held) {
    const int64_t forwards = plan.checkpoint && block.layer ? 2 : 1;
    step.compute += (block.forward * forwards + block.backward) * plan.micro_batches;
    step.tensor_exchange += (block.forward_exchange * forwards + block.backward_exchange) * plan.micro_batches;
  }
}

// Whether two GPUs exchange the same at the same times, as those in the middle of a pipeline do.
bool exchange_alike(const std::vector<Block>& a, const std::vector<Block>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Block& x, const Block& y) {
    return x.layer == y.layer && x.parameters == y.parameters && forward_of(x) == forward_of(y) &&
           backward_of(x, false) == backward_of(y, false);
  });
}

// The step of GPUs that share all work evenly and never wait for each other, memory aside.
Result<double> ideal_seconds(const CostSource& source, const Plan& plan) {
  auto alone = source(plan.micro_batch, 1);
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

Result<Step> estimate_step(const CostSource& source, const StepSetup& setup, const Plan& plan) {
  if (const Status status = check_plan(plan); !status) return status.error();
  auto costs = source(plan.micro_batch, plan.tensor);
  if (!costs) return costs.error();
  if (plan.pipeline > 1) costs->blocks.back().parameters += costs->tied_parameters;
  auto stages = cut_into_stages(costs->blocks, plan.pipeline * plan.chunks);
  if (!stages) return stages.error();

  const Network network(setup.cluster, setup.efficiency);
  const ExchangeSetup exchange{network, {plan.data, plan.tensor}, setup.bytes, setup.bucket};
  Nanoseconds hop;
  if (plan.pipeline > 1) {
    const Bytes passed = costs->blocks[(*stages)[0].end - 1].output;
    hop = network.send(passed, plan.tensor * plan.data, plan.tensor);
  }
  const std::vector<StageTimes> times = times_of(costs->blocks, *stages, plan);
  const PipelineRun run = run_pipeline(times, {plan.pipeline, plan.chunks, plan.micro_batches}, hop);

  Step step;
  step.plan = plan;
  std::vector<Block> before;
  Result<ExchangeTimes> sent = ExchangeTimes{};
  for (int64_t d = 0; d < plan.pipeline; ++d) {
    std::vector<Block> held = held_by(costs->blocks, *stages, plan, d);
    if (d == 0 || !exchange_alike(held, before)) sent = exchange_of(held, plan, exchange);
    if (!sent) return sent.error();
    const Nanoseconds update = update_of(*costs, held, plan);
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
  step.parts = costs->passes.of(step.compute);
  step.parts.memory_access += step.update;
  step.parts.communication = step.exposed + step.tensor_exchange;
  step.parts.bubble = step.time - step.parts.total();
  step.memory = memory_of(costs->blocks, *stages, plan, setup.bytes);
  step.fits = step.memory.total() <= setup.cluster.gpu.memory;

  step.samples = plan.global_batch();
  step.samples_per_second = static_cast<double>(step.samples) / seconds(step.time);
  step.tokens_per_second = step.samples_per_second * static_cast<double>(costs->tokens_per_sample);
  step.model_flops_share = costs->peak_seconds * step.samples_per_second / static_cast<double>(plan.gpus());
  const Result<double> ideal = ideal_seconds(source, plan);
  if (!ideal) return ideal.error();
  step.efficiency = *ideal / seconds(step.time);
  return step;
}

}  // namespace forerun::scale
