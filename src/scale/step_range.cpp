#include "scale/step_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scale/step.h"

namespace forerun::scale {
namespace {

constexpr double kExchangeLess = 0.5, kExchangeMore = 1.0;  // of the exchange that shows
constexpr double kNodesDoubled = 0.015;  // of the step, later, each time that there are twice as many nodes
constexpr double kNeverValidated = 0.5;  // of the step, later

// What the runs to look at reach to.
constexpr int64_t kSharded = 512;         // GPUs of FSDP
constexpr int64_t kMegatron = 3072;       // GPUs of Megatron-LM
constexpr int64_t kChunks = 3;            // of its interleaved pipelines
constexpr int64_t kWidthKept = 2048;      // of layers without checkpoints, on the one machine of vTrain
constexpr double kSlowestNetwork = 40e9;  // bytes a second and node, of FSDP across nodes

double value_of(Nanoseconds time) { return static_cast<double>(time.value); }

bool is_published(const Device& gpu) {
  return gpu.name.find("A100") != std::string::npos || gpu.name.find("H100") != std::string::npos;
}

}  // namespace

std::vector<std::string> unvalidated_parts(const Plan& plan, const GpuCluster& cluster, bool megatron, int64_t width) {
  std::vector<std::string> parts;
  if (plan.gpus() == 1) return parts;
  const bool across = plan.gpus() > cluster.node;
  if (plan.exchange != Exchange::all_reduce || plan.schedule != Schedule::buckets) return parts;  // suite ddl-benchmark
  if (!megatron && plan.tensor * plan.pipeline > 1) {
    parts.emplace_back("tensor groups and stages in eager PyTorch");
  }
  if (megatron && (plan.zero == 1 || plan.zero == 2)) parts.push_back(fmt::format("ZeRO {} in Megatron-LM", plan.zero));
  if (plan.chunks > kChunks) parts.push_back(fmt::format("more than {} chunks a GPU", kChunks));
  if (plan.zero_bubble) parts.emplace_back("zero-bubble schedules");
  if (plan.sequence) parts.emplace_back("sequence parallelism");
  if (plan.context > 1) parts.emplace_back("context groups");
  if (plan.experts > 1) parts.emplace_back("experts or tables dealt out to GPUs");
  if (plan.shards() < plan.replicas()) parts.emplace_back("shards that are replicated (HSDP)");
  if (megatron && plan.zero == 3 && plan.tensor > 1) parts.emplace_back("ZeRO 3 with tensor groups");
  if (megatron && across && !plan.checkpoint) {
    parts.emplace_back("Megatron-LM across nodes without checkpoints");
  } else if (megatron && !plan.checkpoint && width > kWidthKept) {
    parts.push_back(fmt::format("Megatron-LM without checkpoints, of layers wider than {}", kWidthKept));
  }
  if (!megatron && plan.zero >= 2 && across && cluster.between.bandwidth < kSlowestNetwork) {
    parts.push_back(fmt::format("ZeRO {} over less than {:.0f} Gb/s a node", plan.zero, kSlowestNetwork * 8e-9));
  }
  const int64_t most = megatron ? kMegatron : kSharded;
  if (across && plan.gpus() > most) parts.push_back(fmt::format("more than {} GPUs", most));
  if (plan.zero >= 2 && !is_published(cluster.gpu)) parts.emplace_back("ZeRO 2 and 3 on GPUs other than A100 and H100");
  return parts;
}

void set_range(Step& step, const StepSetup& setup) {
  const double time = value_of(step.time);
  const double exchanged = value_of(step.exposed), computed = time - exchanged;
  const auto nodes = static_cast<double>(std::max<int64_t>(1, step.plan.gpus() / setup.cluster.node));
  step.unvalidated = unvalidated_parts(step.plan, setup.cluster, setup.megatron, setup.width);
  if (setup.compiled && step.plan.gpus() > 1) step.unvalidated.emplace_back("compiled models on several GPUs");
  if (setup.fp8) step.unvalidated.emplace_back("products in fp8");
  if (step.plan.offload) step.unvalidated.emplace_back("an optimizer on the host");
  const double less = std::hypot(computed * (1 - step.computation.low), exchanged * kExchangeLess);
  const double more = std::hypot(std::hypot(computed * (step.computation.high - 1), exchanged * kExchangeMore),
                                 time * kNodesDoubled * std::log2(nodes));
  step.low = Nanoseconds(std::llround(std::max(time - less, 0.0)));
  const bool predicted = step.plan.gpus() == 1 && !setup.megatron;  // what is not known of it is in its range
  const double unknown = step.unvalidated.empty() || predicted ? 0 : time * kNeverValidated;
  step.high = Nanoseconds(std::llround(time + more + unknown));
}

}  // namespace forerun::scale
