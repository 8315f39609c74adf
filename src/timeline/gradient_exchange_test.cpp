// Exchanges of gradients on small iterations whose answers are known, and properties on random ones.
#include "timeline/gradient_exchange.h"

#include <gtest/gtest.h>

#include <random>

#include "cost/collective/contention.h"
#include "timeline/exchange_costs.h"
#include "timeline/reference_simulator.h"
#include "timeline/simulator.h"
#include "timeline/test_chain.h"

namespace forerun {
namespace {

ChainCase random_chain(std::mt19937& random) {
  std::vector<LayerCase> layers(2 + random() % 8);
  for (LayerCase& layer : layers) {
    layer = {100 + static_cast<int64_t>(random() % 900), 100 + static_cast<int64_t>(random() % 900),
             static_cast<int64_t>(random() % 50), 1 + static_cast<int64_t>(random() % 1000)};
  }
  return chain_of(layers);
}

// A link that moves a byte in a nanosecond.
GradientExchange plain_link(int64_t latency, Grouping grouping) {
  GradientExchange exchange;
  exchange.grouping = grouping;
  exchange.latency = Nanoseconds(latency);
  exchange.parts = [latency](Bytes bytes) {
    return std::vector<ExchangePart>{{0, Nanoseconds(latency + bytes.value), Nanoseconds(0)}};
  };
  return exchange;
}

int64_t time_of(const ChainCase& chain, const GradientExchange& exchange) {
  const ExchangedGraph made = exchanged(chain, exchange);
  const auto time = steady_iteration(made.graph, made.beginning, made.carried);
  EXPECT_TRUE(time.ok());
  return time->value;
}

TEST(GradientExchange, BulkSynchronousIsComputationPlusTheRing) {
  const ChainCase chain = chain_of({{1000, 2000, 100, 4000}, {1000, 2000, 100, 8000}});
  const Topology topology{8, 1, link_of(1e9, 0), link_of(1e9, 50)};
  GradientExchange exchange = by_all_reduce({.algorithm = AllReduce::ring, .topology = topology});
  exchange.grouping = Grouping::whole;
  EXPECT_EQ(time_of(chain, exchange), chain.compute + ring_all_reduce(Bytes(12000), 8, link_of(1e9, 50)).value);
}

TEST(GradientExchange, WaitFreeHidesWhatFits) {
  // The second layer's 1500 ns pass beside the first layer's backward; the first one's 500 ns do not.
  const ChainCase chain = chain_of({{1000, 2000, 0, 500}, {1000, 2000, 0, 1500}});
  EXPECT_EQ(time_of(chain, plain_link(0, Grouping::each)), chain.compute + 500);
  EXPECT_EQ(time_of(chain, plain_link(0, Grouping::whole)), chain.compute + 2000);
  // With a latency of 3000 two messages are worse than one; merging finds that.
  EXPECT_EQ(time_of(chain, plain_link(3000, Grouping::merged)), time_of(chain, plain_link(3000, Grouping::whole)));
  EXPECT_GT(time_of(chain, plain_link(3000, Grouping::each)), time_of(chain, plain_link(3000, Grouping::whole)));
}

TEST(GradientExchange, BucketsCloseAsInPyTorch) {
  GradientExchange exchange;
  exchange.bucket = Bytes(25);
  exchange.first_bucket = Bytes(1);
  std::vector<Bytes> gradients;
  for (const int64_t bytes : {2, 10, 10, 10, 100, 5, 5}) gradients.emplace_back(bytes);
  EXPECT_EQ(message_ends(gradients, {}, exchange), (std::vector<size_t>{0, 3, 4, 6}));
  EXPECT_TRUE(message_ends({}, {}, exchange).empty());
}

TEST(GradientExchange, WithoutLatencyWaitFreeIsNeverSlowerThanBulk) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const ChainCase chain = random_chain(random);
    const int64_t bulk = time_of(chain, plain_link(0, Grouping::whole));
    EXPECT_EQ(bulk, chain.compute + chain.bytes);
    const int64_t each = time_of(chain, plain_link(0, Grouping::each));
    EXPECT_LE(each, bulk);
    EXPECT_GE(each, std::max(chain.compute, chain.bytes));
    GradientExchange buckets = plain_link(0, Grouping::buckets);
    buckets.bucket = Bytes(1500);
    buckets.first_bucket = Bytes(100);
    EXPECT_LE(time_of(chain, buckets), bulk);
    EXPECT_GE(time_of(chain, buckets), each);
  }
}

TEST(GradientExchange, MergingIsNeverSlowerThanOneMessage) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    const ChainCase chain = random_chain(random);
    const auto latency = static_cast<int64_t>(random() % 1500);
    EXPECT_LE(time_of(chain, plain_link(latency, Grouping::merged)),
              time_of(chain, plain_link(latency, Grouping::whole)));
  }
}

TEST(GradientExchange, PrioritiesAcrossIterationsAreNeverSlowerThanWaitingForAll) {
  std::mt19937 random(3);
  int faster = 0;
  for (int i = 0; i < 200; ++i) {
    const ChainCase chain = random_chain(random);
    GradientExchange waiting = plain_link(0, Grouping::each);
    waiting.slice = Bytes(50);
    GradientExchange crossing = waiting;
    crossing.prioritised = crossing.crosses = true;
    const int64_t slow = time_of(chain, waiting), fast = time_of(chain, crossing);
    EXPECT_LE(fast, slow + 50);  // a slice under way is not interrupted
    EXPECT_GE(fast + 50, std::max(chain.compute, chain.bytes));
    faster += fast < slow ? 1 : 0;
    GradientExchange nobody_waits = waiting;
    nobody_waits.awaited = false;
    EXPECT_LE(time_of(chain, nobody_waits), slow);
    EXPECT_GE(time_of(chain, nobody_waits), std::max(chain.compute, chain.bytes));
  }
  EXPECT_GT(faster, 100);
}

TEST(GradientExchange, PriorityGoesToWhatIsUsedFirst) {
  // While the last layer's large gradient is sent, the first layer's becomes ready: it goes before the second's.
  const ChainCase chain = chain_of({{1000, 100, 0, 300}, {1000, 100, 0, 3000}, {1000, 100, 0, 1000}});
  GradientExchange exchange = plain_link(0, Grouping::each);
  exchange.prioritised = exchange.crosses = true;
  const ExchangedGraph made = exchanged(chain, exchange);
  const Simulation simulation = simulate(made.graph);
  std::vector<std::pair<int64_t, int64_t>> sent;  // start, duration
  for (const TaskId task : select(made.graph, is_kind(TaskKind::communication))) {
    sent.emplace_back(simulation.start_of(task).value, made.graph.duration(task).value);
  }
  std::sort(sent.begin(), sent.end());
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[0].second, 1000);
  EXPECT_EQ(sent[1].second, 300);
  EXPECT_EQ(sent[2].second, 3000);
}

TEST(GradientExchange, SlicesHoldAllBytesAndShareLatency) {
  const ChainCase chain = chain_of({{1000, 1000, 0, 10'001}});
  int64_t sent = 0;
  GradientExchange exchange = plain_link(0, Grouping::each);
  exchange.slice = Bytes(4000);
  exchange.parts = [&sent](Bytes bytes) {
    sent += bytes.value;
    return std::vector<ExchangePart>{{0, Nanoseconds(bytes.value), Nanoseconds(0)}};
  };
  GraphEdit edit(chain.graph);
  std::vector<CarriedDependency> carried;
  const ExchangeCounts counts = add_exchange(edit, {chain.pass}, exchange, carried);
  EXPECT_EQ(sent, 10'001);
  EXPECT_EQ(counts.messages, 1);
  EXPECT_EQ(counts.slices, 3);
  EXPECT_EQ(counts.bytes, Bytes(10'001));
  // Four in flight: each occupies the link for a quarter of the latency, and arrives after the rest of it.
  const Topology topology{2, 1, link_of(1e9, 0), link_of(1e9, 400)};
  const auto parts =
      by_all_reduce({.algorithm = AllReduce::ring, .topology = topology, .in_flight = 4}).parts(Bytes(0));
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].busy, Nanoseconds(200));
  EXPECT_EQ(parts[0].lag, Nanoseconds(600));
}

TEST(GradientExchange, ServersSendAndAnswerBesideOneAnother) {
  const Topology topology{4, 1, link_of(1e9, 0), link_of(1e9, 0)};
  const ChainCase chain = chain_of({{1000, 1000, 0, 100'000}});
  GradientExchange exchange = by_servers({.topology = topology});
  exchange.grouping = Grouping::whole;
  EXPECT_EQ(time_of(chain, exchange), chain.compute + 200'000);  // one message: there and back
  exchange.slice = Bytes(1000);
  EXPECT_EQ(time_of(chain, exchange), chain.compute + 101'000);  // cut, only the last slice is on its way back alone
  // One server for four workers is four times as busy.
  GradientExchange crowded = by_servers({.topology = topology, .servers = 1});
  crowded.grouping = Grouping::whole;
  EXPECT_EQ(time_of(chain, crowded), chain.compute + 800'000);
}

TEST(GradientExchange, BlueConnectPipelinesItsStages) {
  const Topology topology{2, 4, link_of(1e9, 0), link_of(1e9, 0)};
  const ChainCase chain = chain_of({{100, 100, 0, 40'000}, {100, 100, 0, 40'000}, {100, 100, 0, 40'000}});
  GradientExchange blue = by_all_reduce({.algorithm = AllReduce::blueconnect, .topology = topology});
  GradientExchange flat = by_all_reduce({.algorithm = AllReduce::hierarchical, .topology = topology});
  blue.grouping = flat.grouping = Grouping::each;
  EXPECT_LT(time_of(chain, blue), time_of(chain, flat));
}

TEST(GradientExchange, CompressionStandsOnTheStream) {
  const ChainCase chain = chain_of({{1000, 2000, 0, 500}});
  GradientExchange exchange = plain_link(0, Grouping::each);
  exchange.before = [](Bytes) { return Nanoseconds(70); };
  exchange.after = [](Bytes) { return Nanoseconds(30); };
  EXPECT_EQ(time_of(chain, exchange), chain.compute + 70 + 500 + 30);
}

TEST(GradientExchange, ContentionLengthensWhatOverlaps) {
  // The second layer's message runs beside the first layer's backward of 10,000; the first one's behind everything.
  const ChainCase chain = chain_of({{1000, 10'000, 0, 1000}, {1000, 1000, 0, 1000}});
  GradientExchange exchange = plain_link(0, Grouping::each);
  exchange.parts = [](Bytes bytes) {
    return std::vector<ExchangePart>{{0, Nanoseconds(bytes.value), Nanoseconds(0), kCollectiveSlowdown, 1}};
  };
  GraphEdit edit(chain.graph);
  std::vector<CarriedDependency> carried;
  std::vector<ContendingTask> tasks = add_exchange(edit, {chain.pass}, exchange, carried).contending;
  ASSERT_EQ(tasks.size(), 2U);
  std::vector<TaskId> now;
  const auto alone = edit.build(&now);
  ASSERT_TRUE(alone.ok());
  for (ContendingTask& task : tasks) task.task = now[task.task.value];
  const TaskGraph graph = contended(*alone, tasks);
  ASSERT_EQ(graph.size(), alone->size());
  EXPECT_NEAR(static_cast<double>(graph.duration(tasks[0].task).value), 1340, 5);
  EXPECT_EQ(graph.duration(tasks[1].task), Nanoseconds(1000));
  const TaskId backward = now[chain.pass.gradients[1].ready.value];
  EXPECT_NEAR(static_cast<double>(graph.duration(backward).value), 10'000 + 1340 * (1 - 1 / 1.189), 5);
  for (uint32_t i = 0; i < graph.size(); ++i) EXPECT_GE(graph.duration(TaskId(i)), alone->duration(TaskId(i)));
  // A message behind everything contends with nothing.
  exchange.grouping = Grouping::whole;
  EXPECT_EQ(time_of(chain, exchange), chain.compute + chain.bytes);
}

TEST(GradientExchange, TrafficIsTheSlowerLinksShare) {
  const Topology node{1, 4, link_of(4e9, 0), link_of(1e9, 0)}, cluster{2, 4, link_of(4e9, 0), link_of(1e9, 0)};
  const auto within = by_all_reduce({.algorithm = AllReduce::ring, .topology = node}).parts(Bytes(1'000'000));
  EXPECT_DOUBLE_EQ(within[0].traffic, 1);
  EXPECT_DOUBLE_EQ(within[0].slowed, kCollectiveSlowdown);
  const auto between = by_all_reduce({.algorithm = AllReduce::ring, .topology = cluster}).parts(Bytes(1'000'000));
  EXPECT_DOUBLE_EQ(between[0].traffic, 0.25);
  EXPECT_DOUBLE_EQ(between[0].slowed, 1);  // the network is slower than the GPU in any case
}

TEST(GradientExchange, OneWorkerChangesNothing) {
  const ChainCase chain = chain_of({{1000, 2000, 10, 500}, {1000, 2000, 10, 500}});
  const Topology topology{1, 1, link_of(1e9, 10), link_of(1e9, 10)};
  EXPECT_EQ(time_of(chain, by_all_reduce({.topology = topology})), chain.compute);
  EXPECT_EQ(time_of(chain, by_servers({.topology = topology})), chain.compute);
}

TEST(GradientExchange, SimulatorsAgreeOnExchanges) {
  std::mt19937 random(4);
  for (int i = 0; i < 50; ++i) {
    const ChainCase chain = random_chain(random);
    const Topology topology{2, 2, link_of(2e9, 5), link_of(1e9, 20)};
    GradientExchange exchange =
        i % 2 == 0 ? by_servers({.topology = topology})
                   : by_all_reduce({.algorithm = AllReduce::blueconnect, .topology = topology, .in_flight = 1 + i % 3});
    exchange.grouping = Grouping::each;
    exchange.slice = Bytes(200);
    exchange.prioritised = exchange.crosses = i % 4 < 2;
    const ExchangedGraph made = exchanged(chain, exchange);
    std::vector<std::vector<TaskId>> copies;
    const auto graph = repeat(made.graph, 3, made.beginning, &copies, made.carried);
    ASSERT_TRUE(graph.ok());
    EXPECT_EQ(simulate(*graph).start, reference_simulate(*graph).start);
  }
}

TEST(GradientExchange, ParametersAreGatheredOneMessageAhead) {
  // Four uses of 1000 each; a gather takes 600: the first is waited for, the others run beside the use before.
  const ChainCase chain = chain_of({{1000, 0, 0, 10}, {1000, 0, 0, 10}, {1000, 0, 0, 10}, {1000, 0, 0, 10}});
  const auto end_with = [&](int64_t gather, int64_t message) {
    GraphEdit edit(chain.graph);
    ParameterGathering gathering;
    gathering.lane = edit.add_lane({LaneKind::network_link, 0, 0, false, "network"});
    gathering.message = Bytes(message);
    gathering.costs = [gather](Bytes bytes) { return ExchangePart{0, Nanoseconds(gather * bytes.value / 10), {}}; };
    std::vector<ParameterUse> uses;
    for (size_t i = chain.pass.gradients.size(); i-- > 0;) uses.push_back({chain.pass.gradients[i].used, Bytes(10)});
    const GatherCounts counts = add_gathers(edit, uses, gathering);
    EXPECT_EQ(counts.exchange, Nanoseconds(4 * gather));
    EXPECT_EQ(counts.first.size(), 2U);
    const auto graph = edit.build();
    EXPECT_TRUE(graph.ok());
    return simulate(*graph).end.value;
  };
  EXPECT_EQ(end_with(600, 1), chain.compute + 600);
  EXPECT_EQ(end_with(1500, 1), 4 * 1500 + 1000);       // the network is never idle but before the last use
  EXPECT_EQ(end_with(600, 20), chain.compute + 1200);  // two uses a message
}

}  // namespace
}  // namespace forerun
