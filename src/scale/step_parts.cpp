#include "scale/step_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scale/offload.h"
#include "timeline/sharded_exchange.h"

namespace forerun::scale {
namespace {

double in_seconds(Nanoseconds time) { return static_cast<double>(time.value) * 1e-9; }

std::vector<StageTimes> times_of(const std::vector<Block>& blocks, const std::vector<BlockRange>& stages) {
  std::vector<StageTimes> times;
  for (const BlockRange& range : stages) {
    StageTimes stage;
    for (size_t i = range.begin; i < range.end; ++i) {
      stage.forward += forward_of(blocks[i]);
      stage.backward += backward_of(blocks[i]);
      stage.weights += blocks[i].weight_gradients;
    }
    times.push_back(stage);
  }
  return times;
}

// Megatron's stages wait until what they send has arrived, before anything else runs on them.
void wait_for_sends(PlanParts& parts) {
  for (size_t i = 0; i < parts.times.size(); ++i) {
    if (i + 1 < parts.times.size()) parts.times[i].forward += parts.hop;
    if (i > 0) parts.times[i].backward += parts.hop;
  }
  parts.hop = Nanoseconds();
}

// Experts are exchanged by fewer GPUs than the rest: they count for as many bytes as would take as long among all.
std::vector<Block> as_exchanged(std::vector<Block> held, const Plan& plan, const ExchangeSetup& setup) {
  if (plan.experts == 1) return held;
  const Group alike{plan.replicas() / plan.experts, plan.tensor * plan.experts};
  for (Block& block : held) {
    const Bytes bytes(block.expert_parameters * setup.bytes.gradient);
    if (bytes.value == 0) continue;
    const double among_all = in_seconds(setup.network.reduce_scatter(bytes, setup.group));
    const double share = in_seconds(setup.network.reduce_scatter(bytes, alike)) / among_all;
    block.parameters += std::llround((share - 1) * static_cast<double>(block.expert_parameters));
  }
  return held;
}

// Fewer stages or chunks, where there are not as many blocks as the plan wants.
std::string nearest_stages(const Plan& plan, int64_t blocks) {
  if (plan.chunks > 1 && blocks >= plan.pipeline) {
    const int64_t chunks = blocks / plan.pipeline;
    return chunks > 1 ? fmt::format("choose chunks={}", chunks) : "leave out chunks";
  }
  const int64_t gpus = plan.data * plan.pipeline;
  int64_t stages = std::min(blocks, gpus);
  while (gpus % stages != 0) --stages;
  return stages > 1 ? fmt::format("choose pp={}", stages) : "leave out pp";
}

}  // namespace

Efficiency efficiency_of(const StepSetup& setup, const Plan& plan) {
  Efficiency efficiency = setup.efficiency;
  if (setup.megatron && plan.zero == 3) efficiency.links.between.share = efficiency.zero3_share;
  return efficiency;
}

Cut cut_of(const Plan& plan) {
  return {.micro_batch = plan.micro_batch,
          .tensor = plan.tensor,
          .checkpoint = plan.checkpoint,
          .selective = plan.selective,
          .sequence = plan.sequence,
          .context = plan.context,
          .experts = plan.experts};
}

Result<PlanParts> parts_of(const CostSource& source, const StepSetup& setup, const Plan& plan) {
  auto costs = source(cut_of(plan));
  if (!costs) return costs.error();
  if (plan.pipeline > 1) costs->blocks.back().parameters += costs->tied_parameters;
  auto stages = cut_into_stages(costs->blocks, plan.pipeline * plan.chunks);
  if (!stages) {
    return Error{stages.error().what, "--strategy pp",
                 nearest_stages(plan, static_cast<int64_t>(costs->blocks.size()))};
  }
  PlanParts parts{.costs = std::move(*costs),
                  .stages = std::move(*stages),
                  .times = {},
                  .shape = {plan.pipeline, plan.chunks, plan.micro_batches, plan.zero_bubble},
                  .hop = {}};
  if (plan.pipeline > 1) {
    const Network network(setup.cluster, efficiency_of(setup, plan));
    const Bytes passed = parts.costs.blocks[parts.stages[0].end - 1].output;
    parts.hop = network.send(passed, plan.tensor * plan.replicas(), plan.sequence ? 1 : plan.tensor);
  }
  parts.times = times_of(parts.costs.blocks, parts.stages);
  if (setup.megatron) wait_for_sends(parts);
  if (plan.zero_bubble && parts.times.front().weights == Nanoseconds()) {
    return Error{"what gradients of weights take is not known apart from the rest of the backward pass", "zb",
                 "take --stack megatron, or leave out zb"};
  }
  return parts;
}

std::vector<Block> held_by(const PlanParts& parts, const Plan& plan, int64_t device) {
  const std::vector<Block>& blocks = parts.costs.blocks;
  std::vector<Block> held;
  for (int64_t chunk = 0; chunk < plan.chunks; ++chunk) {
    const BlockRange& range = parts.stages[static_cast<size_t>(chunk * plan.pipeline + device)];
    held.insert(held.end(), blocks.begin() + static_cast<std::ptrdiff_t>(range.begin),
                blocks.begin() + static_cast<std::ptrdiff_t>(range.end));
  }
  return held;
}

Nanoseconds update_of(const ModelCosts& costs, const std::vector<Block>& held, const Plan& plan,
                      const StepSetup& setup) {
  double parameters = 0;
  Nanoseconds backward;
  for (const Block& block : held) {
    const auto experts = static_cast<double>(block.expert_parameters);
    const auto dense = static_cast<double>(block.parameters) - experts;
    const auto shares = static_cast<double>(plan.zero > 0 ? plan.shards() : 1);
    parameters += dense / shares + experts / std::max(1.0, shares / static_cast<double>(plan.experts));
    backward += backward_of(block);
  }
  if (plan.offload) return shown_of(offloaded_update(parameters, setup.bytes, setup.megatron, setup.cluster), backward);
  return costs.update_fixed + Nanoseconds(std::llround(costs.update_ns * parameters));
}

Result<ExchangeTimes> exchange_among(const std::vector<Block>& held, const Plan& plan, const StepSetup& setup,
                                     const Network& network) {
  const Group group{plan.shards(), plan.tensor};
  // Of DeepSpeed's ZeRO 3, zero3_share has all that is known.
  const double waits = setup.megatron ? 0 : waits_for_nodes(plan.zero, network.topology_of(group).nodes);
  const ExchangeSetup exchange{.network = network,
                               .group = group,
                               .bytes = setup.bytes,
                               .bucket = setup.bucket,
                               .copies = {plan.replicas() / plan.shards(), plan.tensor * plan.shards()},
                               .waits = waits};
  return exchange_of(as_exchanged(held, plan, exchange), plan, exchange);
}

}  // namespace forerun::scale
