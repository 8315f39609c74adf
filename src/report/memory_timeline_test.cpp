#include "report/memory_timeline.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "graph/graph_builder.h"
#include "report/memory_answer.h"

namespace forerun {
namespace {

constexpr int64_t kMiB = kMebibyte;

Graph one_layer() {
  GraphBuilder builder;
  const auto tensor = [&](int64_t mib, Root root = Root::none) {
    const StorageId id = builder.add_storage(Bytes(mib * kMiB));
    if (root != Root::none) builder.mark_root(id, root, "fc<1>.weight");
    return builder.add_tensor(id, DType::uint8, std::vector<int64_t>{mib * kMiB});
  };
  const std::vector<TensorId> weight = {tensor(20, Root::parameter)};
  const std::vector<TensorId> made = {tensor(30)};
  const std::vector<TensorId> gradient = {tensor(20)};
  builder.add_op({.name = "aten.neg.default", .module = "a&b", .inputs = weight, .outputs = made});
  builder.add_op({.name = "aten.mul.Tensor", .phase = Phase::backward, .inputs = made, .outputs = gradient});
  builder.add_op({.name = "aten._fused_sgd_.default", .phase = Phase::update, .inputs = gradient});
  builder.mark_freed(builder.graph().tensor(made[0]).storage, OpId(2));
  return builder.finish();
}

struct Drawn {
  Graph graph = one_layer();
  MemoryLog log = log_iterations(graph, {});
  MemoryTimeline timeline = memory_timeline(graph, log, "a <model>");
};

TEST(MemoryTimeline, FollowsOneIteration) {
  const Drawn drawn;
  const MemoryTimeline& timeline = drawn.timeline;
  EXPECT_EQ(timeline.phases, (std::array<size_t, 4>{0, 1, 2, 3}));
  ASSERT_FALSE(timeline.samples.empty());
  EXPECT_EQ(timeline.samples[timeline.peak].total(), 70 * kMiB);
  EXPECT_EQ(timeline.peak_op, "aten.mul.Tensor");
  for (size_t i = 1; i < timeline.samples.size(); ++i) EXPECT_LE(timeline.samples[i - 1].at, timeline.samples[i].at);
}

TEST(MemoryTimeline, IsDrawnWithoutBreakingTheMarkup) {
  const std::string svg = to_svg(Drawn().timeline);
  EXPECT_EQ(svg.find("a <model>"), std::string::npos);
  EXPECT_NE(svg.find("a &lt;model&gt;"), std::string::npos);
  EXPECT_NE(svg.find("Peak 70.0 MiB at op 1: aten.mul.Tensor"), std::string::npos);
  for (const char* word : {"forward", "backward", "update", "parameters", "gradients", "activations", "reserved"}) {
    EXPECT_NE(svg.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(MemoryTimeline, IsDrawnWhereNothingHappens) {
  const Graph empty = GraphBuilder().finish();
  const MemoryLog log = log_iterations(empty, {});
  const std::string svg = to_svg(memory_timeline(empty, log, "nothing"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_FALSE(to_snapshot(empty, log).empty());
}

TEST(MemoryTimeline, CountsForChrome) {
  const auto json = nlohmann::json::parse(to_chrome_counters(Drawn().timeline));
  int64_t highest = 0;
  int phases = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "X") ++phases;
    if (event["ph"] != "C" || event["name"] != "allocated") continue;
    int64_t sum = 0;
    for (const auto& [kind, bytes] : event["args"].items()) sum += bytes.get<int64_t>();
    highest = std::max(highest, sum);
  }
  EXPECT_EQ(highest, 70 * kMiB);
  EXPECT_EQ(phases, 3);
}

TEST(MemoryAnswer, PartsAddUpToWhatTheDriverShows) {
  MemoryEstimate estimate;
  estimate.peak_allocated = Bytes(100);
  estimate.peak_reserved = Bytes(120);
  estimate.parameters = Bytes(60);
  estimate.activations = Bytes(40);
  MemoryAnswer answer;
  answer.fragmentation = Bytes(20);
  Bytes sum;
  for (const auto& [name, bytes] : parts_of(estimate, answer, Bytes(7))) sum += bytes;
  EXPECT_EQ(sum, Bytes(127));
}

}  // namespace
}  // namespace forerun
