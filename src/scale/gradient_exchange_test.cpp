// The exchange of blocks against two lanes of arithmetic, on random blocks; what contention adds.
#include "scale/gradient_exchange.h"

#include <gtest/gtest.h>

#include <random>

#include "scale/test_cluster.h"

namespace forerun::scale {
namespace {

// Links within a node so fast that what goes over the network takes nothing from computation.
GpuCluster without_contention(int64_t gpus) {
  GpuCluster cluster = test_cluster(gpus);
  cluster.node = 1;
  cluster.within.bandwidth = 1e18;
  cluster.between.bandwidth = 10e9;
  return cluster;
}

std::vector<Block> random_blocks(std::mt19937& random) {
  std::vector<Block> blocks(1 + random() % 30);
  for (Block& block : blocks) {
    block.layer = random() % 4 != 0;
    block.parameters = random() % 5 == 0 ? 0 : static_cast<int64_t>(random() % 20'000'000);
    block.forward = Nanoseconds(static_cast<int64_t>(random() % 5'000'000));
    block.backward = block.forward * 2;
    block.backward_exchange = Nanoseconds(static_cast<int64_t>(random() % 100'000));
  }
  return blocks;
}

// GPU and network; each does one thing at a time, in order.
struct TwoLanes {
  std::span<const Block> blocks;
  const Plan& plan;
  const ExchangeSetup& setup;
  Nanoseconds gpu{}, network{}, computed{}, sent{}, before{};
  std::vector<Nanoseconds> gathered = std::vector<Nanoseconds>(blocks.size());

  [[nodiscard]] Bytes gradient(size_t i) const { return Bytes(blocks[i].parameters * setup.bytes.gradient); }
  void send(Nanoseconds ready, Nanoseconds time) {
    network = std::max(network, ready) + time;
    sent += time;
  }
  void gather(size_t i) {
    const Bytes bytes(blocks[i].parameters * setup.bytes.parameter);
    if (plan.zero < 3 || bytes.value == 0) return;
    send(before, setup.network.all_gather(bytes, setup.group));
    gathered[i] = network;
  }
  void run(size_t i, Nanoseconds time) {
    if (plan.zero >= 3) gpu = std::max(gpu, gathered[i]);
    before = gpu;
    gpu += time;
    computed += time;
  }
  void buckets() {
    Bytes waiting, to_come;
    for (size_t i = 0; i < blocks.size(); ++i) to_come += gradient(i);
    bool first = true;
    for (size_t i = blocks.size(); i-- > 0;) {
      run(i, backward_of(blocks[i]));
      waiting += gradient(i);
      to_come -= gradient(i);
      if (waiting < (first ? kFirstBucket : setup.bucket) && to_come.value > 0) continue;
      if (waiting.value > 0) send(gpu, setup.network.all_reduce(waiting, setup.group));
      first = false;
      waiting = Bytes();
    }
  }
  void micro_batch() {
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i == 0) gather(0);
      if (i + 1 < blocks.size()) gather(i + 1);
      run(i, forward_of(blocks[i]));
    }
    for (size_t i = blocks.size(); i-- > 0;) {
      if (i + 1 == blocks.size()) gather(i);
      if (i > 0) gather(i - 1);
      run(i, backward_of(blocks[i]));
      if (gradient(i).value > 0) send(gpu, setup.network.reduce_scatter(gradient(i), setup.group));
    }
  }
  [[nodiscard]] Nanoseconds exposed() const { return std::max(gpu, network) - computed; }
};

TEST(ScaleExchange, BucketsAreTwoLanes) {
  std::mt19937 random(1);
  const Network network(without_contention(8), Efficiency());
  Plan plan;
  plan.data = 8;
  for (int i = 0; i < 200; ++i) {
    const std::vector<Block> blocks = random_blocks(random);
    const ExchangeSetup setup{network, {8, 1}, {2, 2, 12}, kBucket};
    TwoLanes lanes{blocks, plan, setup};
    lanes.buckets();
    const auto times = exchange_of(blocks, plan, setup);
    ASSERT_TRUE(times.ok());
    EXPECT_NEAR(static_cast<double>(times->exposed.value), static_cast<double>(lanes.exposed().value), 2000) << i;
    EXPECT_NEAR(static_cast<double>(times->exchange.value),
                static_cast<double>(std::max(lanes.sent, times->exposed).value), 2000);
  }
}

TEST(ScaleExchange, ShardedMicroBatchesAreTwoLanes) {
  std::mt19937 random(2);
  const Network network(without_contention(8), Efficiency());
  for (int i = 0; i < 200; ++i) {
    std::vector<Block> blocks = random_blocks(random);
    for (Block& block : blocks) block.parameters += 1000;  // every block is gathered: the same blocks are ahead
    Plan plan;
    plan.data = 8;
    plan.zero = 3;
    const ExchangeSetup setup{network, {8, 1}, {2, 2, 12}, kBucket};
    TwoLanes lanes{blocks, plan, setup};
    lanes.micro_batch();
    const auto times = exchange_of(blocks, plan, setup);
    ASSERT_TRUE(times.ok());
    const auto found = static_cast<double>(times->exposed.value + lanes.computed.value);
    EXPECT_NEAR(found / static_cast<double>((lanes.exposed() + lanes.computed).value), 1, 1e-3) << i;
  }
}

TEST(ScaleExchange, ContentionAddsToTheStep) {
  std::mt19937 random(3);
  GpuCluster cluster = test_cluster(8);  // one node: messages use all that the GPU's links carry
  const Network network(cluster, Efficiency());
  Plan plan;
  plan.data = 8;
  for (int i = 0; i < 50; ++i) {
    const std::vector<Block> blocks = random_blocks(random);
    const ExchangeSetup setup{network, {8, 1}, {2, 2, 12}, kBucket};
    TwoLanes lanes{blocks, plan, setup};
    lanes.buckets();
    const auto times = exchange_of(blocks, plan, setup);
    ASSERT_TRUE(times.ok());
    EXPECT_GE(times->exposed, lanes.exposed()) << i;
    EXPECT_LE((times->exposed + lanes.computed).value, 1.34 * static_cast<double>((lanes.computed + lanes.sent).value));
  }
}

}  // namespace
}  // namespace forerun::scale
