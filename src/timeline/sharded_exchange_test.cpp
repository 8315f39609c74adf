// ZeRO 3 by units: what FSDP wraps travels together.
#include "timeline/sharded_exchange.h"

#include <gtest/gtest.h>

#include <map>

#include "timeline/exchange_costs.h"
#include "timeline/simulator.h"
#include "timeline/test_chain.h"

namespace forerun {
namespace {

// Forward, backward and update of parameters of these modules, one task each.
ChainCase modules_chain(const std::vector<std::string>& modules, int64_t bytes) {
  ChainCase made;
  auto names = std::make_shared<StringTable>();
  TaskGraphBuilder builder(names);
  Task task;
  task.op_instance = task.event = kNoLink;
  task.kind = TaskKind::mark;
  task.lane = builder.add_lane({LaneKind::host_thread, 0, 0, true, "beginning"});
  made.beginning = builder.add(task);
  task.kind = TaskKind::kernel;
  task.lane = builder.add_lane({LaneKind::gpu_stream, 0, 7, true, "stream 7"});
  task.duration = Nanoseconds(1000);
  std::vector<TaskId> forward;
  for (const std::string& module : modules) {
    task.phase = StepPhase::forward;
    task.module = names->intern(module);
    forward.push_back(builder.add(task));
  }
  task.module = NameId();
  for (size_t i = modules.size(); i-- > 0;) {
    task.phase = StepPhase::backward;
    made.pass.gradients.push_back({builder.add(task), forward[i], Bytes(bytes)});
  }
  task.phase = StepPhase::update;
  made.pass.updates = {builder.add(task)};
  auto graph = std::move(builder).build();
  EXPECT_TRUE(graph.ok());
  made.graph = std::move(*graph);
  return made;
}

// Messages by name.
std::map<std::string, int64_t> messages_of(const ChainCase& chain, double gathered, Nanoseconds* exchange = nullptr) {
  const Topology topology{2, 1, link_of(1e9, 0), link_of(1e9, 50)};
  GradientExchange reduced = by_reduce_scatter(topology);
  reduced.grouping = sharded_grouping(3);
  const ShardedTraining sharded{3, topology, Nanoseconds(0), gathered};
  const auto made = exchanged_tasks(
      chain.graph, {chain.pass}, reduced,
      [&](GraphEdit& edit, const std::vector<BackwardPass>& passes, ExchangeCounts& counts,
          std::vector<CarriedDependency>& carried) { share_out(edit, passes, sharded, counts, carried); });
  EXPECT_TRUE(made.ok());
  if (exchange != nullptr) *exchange = made->exchange;
  std::map<std::string, int64_t> messages;
  for (uint32_t i = 0; i < made->tasks.size(); ++i) {
    const TaskId task(i);
    if (made->tasks.kind(task) == TaskKind::communication) ++messages[made->tasks.text(made->tasks.name(task))];
  }
  return messages;
}

TEST(ShardedExchange, AUnitIsAMessageWhateverItsSize) {
  const ChainCase chain = modules_chain({"wte", "h.0.attn", "h.0.mlp", "h.1.attn", "h.1.mlp", "head"}, 100 << 20);
  const auto messages = messages_of(chain, 1);
  EXPECT_EQ(messages.at("exchange of gradients"), 4);
  EXPECT_EQ(messages.at("gathering of parameters"), 8);  // forward and backward
  EXPECT_EQ(messages_of(modules_chain({"wte", "h.0.attn", "h.0.mlp", "h.1.attn", "h.1.mlp", "head"}, 8), 1), messages);
}

TEST(ShardedExchange, WithoutBlocksMessagesAreBuckets) {
  const auto messages = messages_of(modules_chain({"a", "b", "c", "d"}, 100 << 20), 1);
  EXPECT_EQ(messages.at("exchange of gradients"), 4);
  EXPECT_EQ(messages_of(modules_chain({"a", "b", "c", "d"}, 8), 1).at("exchange of gradients"), 1);
}

TEST(ShardedExchange, TheMoreNodesTheLongerBlocksWait) {
  EXPECT_EQ(waits_for_nodes(3, 1), 0);
  EXPECT_EQ(waits_for_nodes(1, 64), 0);  // its replicas meet once, behind the backward pass
  EXPECT_GT(waits_for_nodes(2, 2), 0);
  EXPECT_DOUBLE_EQ(waits_for_nodes(3, 64), 6 * waits_for_nodes(3, 2));
}

TEST(ShardedExchange, HalfOfTheBytesAreGatheredUnderAutocast) {
  EXPECT_EQ(gathered_share(3, Precision::amp_bf16), 0.5);
  EXPECT_EQ(gathered_share(2, Precision::amp_fp16), 0.5);
  EXPECT_EQ(gathered_share(1, Precision::amp_bf16), 1);
  EXPECT_EQ(gathered_share(3, Precision::bf16), 1);
  const ChainCase chain = modules_chain({"h.0.attn", "h.0.mlp", "h.1.attn", "h.1.mlp"}, 100'000'000);
  Nanoseconds whole, half;
  messages_of(chain, 1, &whole);
  messages_of(chain, 0.5, &half);
  // One message is sent and two are gathered, of half of the tensor each over a byte a nanosecond; latencies aside.
  EXPECT_NEAR(static_cast<double>(whole.value), 3 * 200e6, 1e4);
  EXPECT_NEAR(static_cast<double>(half.value), 2 * 200e6, 1e4);
}

}  // namespace
}  // namespace forerun
