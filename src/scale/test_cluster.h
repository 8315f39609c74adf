// A small cluster and model for the tests of this stage.
#pragma once

#include "scale/step.h"
#include "scale/transformer.h"
#include "scale/transformer_cost.h"

namespace forerun::scale {

inline GpuCluster test_cluster(int64_t gpus) {
  GpuCluster cluster;
  cluster.gpu.name = "test";
  cluster.gpu.memory = Bytes(int64_t{80} << 30);
  cluster.gpu.memory_bandwidth = 2e12;
  cluster.gpu.peak.bf16_tensor = 300e12;
  cluster.gpu.peak.fp16_tensor = 300e12;
  cluster.gpus = gpus;
  cluster.node = 8;
  cluster.within = {"within", {}, nanoseconds_from_us(3), 300e9};
  cluster.between = {"between", {}, nanoseconds_from_us(5), 100e9};
  return cluster;
}

inline Transformer test_model() {
  Transformer t;
  t.name = "test";
  t.layers = 16;
  t.hidden = 2048;
  t.heads = t.kv_heads = 16;
  t.inner = 8192;
  t.vocab = 50304;
  t.positions = t.sequence = 1024;
  return t;
}

struct TestCase {
  Transformer model = test_model();
  StepSetup setup;

  explicit TestCase(int64_t gpus) { setup.cluster = test_cluster(gpus); }
  [[nodiscard]] CostSource costs() const {
    return [this](const Cut& cut) { return transformer_costs(model, setup.cluster, setup.efficiency, {}, cut); };
  }
  [[nodiscard]] Result<Step> step(const Plan& plan) const { return estimate_step(costs(), setup, plan); }
};

}  // namespace forerun::scale
