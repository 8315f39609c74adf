#include "scale/search.h"

#include <algorithm>
#include <map>
#include <memory>

namespace forerun::scale {
namespace {

std::vector<int64_t> powers_of_two(int64_t most) {
  std::vector<int64_t> list;
  for (int64_t value = 1; value <= most; value *= 2) list.push_back(value);
  return list;
}

void add_variants(Plan plan, const SearchSpace& space, std::vector<Plan>& plans) {
  for (const int64_t chunks : {1, 2, 4}) {
    if (chunks > 1 && (plan.pipeline == 1 || space.layers < plan.pipeline * chunks)) continue;
    plan.chunks = chunks;
    for (int zero = 0; zero <= 3; ++zero) {
      if (zero > 0 && plan.data == 1) continue;
      plan.zero = zero;
      if (!check_plan(plan)) continue;
      for (const bool checkpoint : {false, true}) {
        if (checkpoint && space.layers == 0) continue;
        plan.checkpoint = checkpoint;
        plans.push_back(plan);
      }
    }
  }
}

// How experts may be dealt out: not at all, or as far as a node goes.
std::vector<int64_t> expert_groups(const Plan& plan, const SearchSpace& space, const GpuCluster& cluster) {
  std::vector<int64_t> groups = {1};
  for (const int64_t group : powers_of_two(std::min(cluster.node / plan.tensor, plan.data))) {
    if (group == 1 || space.experts % group != 0 || plan.data % group != 0) continue;
    groups.resize(1);
    groups.push_back(group);
  }
  return groups;
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
    if (cluster.gpus % tensor != 0) continue;
    for (int64_t stages = 1; stages <= std::min(cluster.gpus / tensor, space.most_stages); ++stages) {
      if ((cluster.gpus / tensor) % stages != 0) continue;
      Plan plan;
      plan.tensor = tensor;
      plan.pipeline = stages;
      plan.data = cluster.gpus / tensor / stages;
      for (const int64_t micro_batch : powers_of_two(space.most_micro_batch)) {
        if (space.global_batch % (plan.data * micro_batch) != 0) continue;
        plan.micro_batch = micro_batch;
        plan.micro_batches = space.global_batch / (plan.data * micro_batch);
        for (const int64_t experts : expert_groups(plan, space, cluster)) {
          plan.experts = experts;
          add_variants(plan, space, plans);
        }
      }
    }
  }
  return plans;
}

Result<Ranking> rank_plans(const CostSource& costs, const StepSetup& setup, const SearchSpace& space,
                           const WorkControl& control) {
  Ranking ranking;
  const CostSource source = remembering(costs);
  const std::vector<Plan> plans = plans_of(space, setup.cluster);
  Work work(control, "plans", static_cast<int64_t>(plans.size()));
  for (const Plan& plan : plans) {
    ++ranking.considered;
    auto step = estimate_step(source, setup, plan);
    if (!step) {
      ++ranking.impossible;
    } else if (!step->fits) {
      ++ranking.too_large;
    } else {
      ranking.steps.push_back(std::move(*step));
    }
    if (const Status status = work.advance(); !status) return status.error();
  }
  std::stable_sort(ranking.steps.begin(), ranking.steps.end(),
                   [](const Step& a, const Step& b) { return a.ranked() < b.ranked(); });
  return ranking;
}

}  // namespace forerun::scale
