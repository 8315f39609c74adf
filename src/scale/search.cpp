#include "scale/search.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace forerun::scale {
namespace {

std::vector<int64_t> powers_of_two(int64_t most) {
  std::vector<int64_t> list;
  for (int64_t value = 1; value <= most; value *= 2) list.push_back(value);
  return list;
}

// ZeRO 3 among all GPUs with the same weights; or among those of a node, where there are several.
std::vector<int64_t> shards_of(const Plan& plan, const SearchSpace& space, const GpuCluster& cluster) {
  const int64_t within = cluster.node / plan.tensor;
  const bool nodes = plan.zero == 3 && plan.experts == 1 && within > 1 && plan.replicas() > within;
  if (!space.within_nodes || !nodes || cluster.node % plan.tensor != 0) return {0};
  return {0, within};
}

void add_variants(Plan plan, const SearchSpace& space, const GpuCluster& cluster, std::vector<Plan>& plans) {
  for (const int64_t chunks : {1, 2, 4}) {
    if (chunks > 1 && (plan.pipeline == 1 || space.layers < plan.pipeline * chunks)) continue;
    plan.chunks = chunks;
    for (int zero = 0; zero <= 3; ++zero) {
      if (zero > 0 && plan.replicas() == 1) continue;
      plan.zero = zero;
      for (const int64_t shard : shards_of(plan, space, cluster)) {
        plan.shard = shard;
        if (!check_plan(plan)) continue;
        plan.selective = space.selective;
        for (const bool checkpoint : {false, true}) {
          if (checkpoint ? !space.checkpoints || space.selective : space.checkpoint) continue;
          plan.checkpoint = checkpoint;
          plans.push_back(plan);
        }
      }
      plan.shard = 0;
    }
  }
}

// How experts may be dealt out: not at all, or as far as a node goes.
std::vector<int64_t> expert_groups(const Plan& plan, const SearchSpace& space, const GpuCluster& cluster) {
  std::vector<int64_t> groups = {1};
  for (const int64_t group : powers_of_two(std::min(cluster.node / plan.tensor, plan.data))) {
    const bool dealt = space.tables > 0 ? group <= space.tables : space.experts % group == 0;
    if (group == 1 || !dealt || plan.data % group != 0) continue;
    if (!fills_nodes(plan.tensor * plan.context * group, cluster.gpus, cluster.node)) continue;
    groups.resize(1);
    groups.push_back(group);
  }
  return groups;
}

// Plans that cut the model and deal out the GPUs so, with every micro-batch.
void add_batches(Plan plan, const SearchSpace& space, const GpuCluster& cluster, std::vector<Plan>& plans) {
  const std::vector<int64_t> micro_batches =
      space.micro_batch > 0 ? std::vector<int64_t>{space.micro_batch} : powers_of_two(space.global_batch / plan.data);
  for (const int64_t micro_batch : micro_batches) {
    if (space.global_batch % (plan.data * micro_batch) != 0) continue;
    plan.micro_batch = micro_batch;
    plan.micro_batches = space.global_batch / (plan.data * micro_batch);
    for (const int64_t experts : expert_groups(plan, space, cluster)) {
      plan.experts = experts;
      for (const bool sequence : {false, true}) {
        if (sequence && (!space.sequence || plan.tensor == 1)) continue;
        plan.sequence = sequence;
        add_variants(plan, space, cluster, plans);
      }
    }
  }
}

// A source that remembers its answers.
CostSource remembering(const CostSource& costs) {
  auto known = std::make_shared<std::map<Cut, Result<ModelCosts>>>();
  return [known, costs](const Cut& cut) -> Result<ModelCosts> {
    const auto found = known->find(cut);
    if (found != known->end()) return found->second;
    return known->emplace(cut, costs(cut)).first->second;
  };
}

}  // namespace

std::vector<Plan> plans_of(const SearchSpace& space, const GpuCluster& cluster) {
  std::vector<Plan> plans;
  for (const int64_t tensor : powers_of_two(std::min({cluster.node, cluster.gpus, space.most_tensor}))) {
    for (const int64_t context : powers_of_two(std::min(cluster.gpus / tensor, space.most_context))) {
      if (cluster.gpus % (tensor * context) != 0) continue;
      if (!fills_nodes(tensor, cluster.gpus, cluster.node)) continue;
      if (context > 1 && !fills_nodes(tensor * context, cluster.gpus, cluster.node)) continue;
      const int64_t others = cluster.gpus / (tensor * context);
      for (int64_t stages = 1; stages <= std::min(others, space.most_stages); ++stages) {
        if (others % stages != 0) continue;
        Plan plan;
        plan.tensor = tensor;
        plan.context = context;
        plan.pipeline = stages;
        plan.data = others / stages;
        add_batches(plan, space, cluster, plans);
      }
    }
  }
  return plans;
}

void sort_ranked(std::vector<Step>& steps) {
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.ranked() < b.ranked(); });
}

void leave_out(Step step, Ranking& ranking) {
  ++ranking.too_large;
  if (!ranking.nearest || step.memory.total() < ranking.nearest->memory.total()) ranking.nearest = std::move(step);
}

namespace {

// A plan but for its micro-batches.
std::string but_for_batches(Plan plan) {
  plan.micro_batch = plan.micro_batches = 1;
  return describe(plan);
}

}  // namespace

Result<Ranking> rank_plans(const CostSource& costs, const StepSetup& setup, const SearchSpace& space,
                           const WorkControl& control, bool replayed) {
  Ranking ranking;
  const CostSource source = remembering(costs);
  const std::vector<Plan> plans = plans_of(space, setup.cluster);
  const double room = static_cast<double>(setup.cluster.gpu.memory.value);
  std::set<std::string> hopeless;  // plans that far from fit at a smaller micro-batch
  Work work(control, "plans", static_cast<int64_t>(plans.size()));
  for (const Plan& plan : plans) {
    ++ranking.considered;
    const std::string kind = but_for_batches(plan);
    if (hopeless.contains(kind)) {
      ++ranking.too_large;
      continue;
    }
    auto step = estimate_step(source, setup, plan);
    if (!step) {
      ++ranking.impossible;
    } else if (step->fits) {
      ranking.steps.push_back(std::move(*step));
    } else {
      const double needed = static_cast<double>(step->memory.total().value) / room;
      if (needed > 2 * kDoubtful) hopeless.insert(kind);
      if (replayed && needed <= kDoubtful) {
        ranking.doubtful.push_back(std::move(*step));
      } else {
        leave_out(std::move(*step), ranking);
      }
    }
    if (const Status status = work.advance(); !status) return status.error();
  }
  sort_ranked(ranking.steps);
  sort_ranked(ranking.doubtful);
  return ranking;
}

}  // namespace forerun::scale
