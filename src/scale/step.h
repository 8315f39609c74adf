// The step of many GPUs: how long a plan takes, where the time goes, and what memory it needs.
//
// Every stage of the pipeline is played by its schedule (pipeline.h). Gradients of a data-parallel group are exchanged
// bucket by bucket while the last backward pass goes on, or after it; ZeRO 2 and 3 exchange in every micro-batch, with
// parameters fetched one block ahead (gradient_exchange.h). What the GPU does not hide is exposed, and so is what kernels take
// longer beside communication. Megatron's stages wait for what they send; PyTorch's hide it. Left out: data loading, stragglers
// but where every block waits for all nodes (timeline/sharded_exchange.h), and the exchange between the two ends of a pipeline
// that share an embedding.
#pragma once

#include "scale/block.h"
#include "scale/memory_use.h"
#include "scale/network.h"
#include "scale/plan.h"
#include "scale/step_range.h"
#include "timeline/gradient_exchange.h"

namespace forerun::scale {

struct Step {
  Plan plan;
  Nanoseconds time;
  Nanoseconds compute;          // of the busiest GPU: forward and backward passes
  Nanoseconds tensor_exchange;  // of the same GPU, within tensor, context and expert groups; never hidden
  Nanoseconds bubble;           // waiting for other stages
  Nanoseconds exchange;         // of gradients and parameters, hidden or not
  Nanoseconds exposed;          // of that, what adds to the step
  Nanoseconds update;
  TimeParts parts;  // what the step is spent on: passes as the whole model's, the update as access to memory
  int64_t samples =
      0;  // of the whole cluster; other than the plan's where GPUs of several kinds have batches of their own
  double samples_per_second = 0;
  double tokens_per_second = 0;
  double model_flops_share = 0;  // of the GPUs' peak, by the model's own products; of the units that run them
  double efficiency = 0;         // speed over that of as many GPUs that share all work evenly and never wait
  MemoryUse memory;
  bool fits = true;
  RatioRange computation = {};           // of the passes' times
  Nanoseconds low, high;                 // eight of ten measured steps lie between them
  std::vector<std::string> unvalidated;  // what the plan rests on that no published run tells of
  // By which plans are ranked: those that rest on nothing that was validated by the slow end of their range.
  [[nodiscard]] Nanoseconds ranked() const { return unvalidated.empty() ? time : high; }
};

struct StepSetup {
  GpuCluster cluster;
  Efficiency efficiency;
  StateBytes bytes;
  Unit unit = Unit::bf16_tensor;  // of a transformer's arithmetic
  Bytes bucket = kBucket;
  RatioRange computation = {};  // of the passes' times, where nothing more is known of a plan
  bool megatron = false;        // Megatron-LM trains it; ZeRO 3 is then DeepSpeed's, and stages wait for what they send
  bool compiled = false;        // its model is compiled
  int64_t width = 0;            // of a transformer's layers; 0: not told
  bool fp8 = false;             // its linear layers multiply in fp8
};

// Puts other times of the exchange of gradients in place of the estimated ones.
void set_exchange(Step& step, Nanoseconds exchange, Nanoseconds exposed);

// The same of the passes and the update, which GPUs that share all work evenly would take too.
void set_passes(Step& step, Nanoseconds compute, Nanoseconds update);

// How the model is cut by a plan.
Cut cut_of(const Plan& plan);

Result<Step> estimate_step(const CostSource& costs, const StepSetup& setup, const Plan& plan);

}  // namespace forerun::scale
