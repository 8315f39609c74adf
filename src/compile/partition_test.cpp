// What is kept for the backward pass: small graphs by hand, and random ones against every set that could be kept.
#include "compile/partition.h"

#include <gtest/gtest.h>

#include <random>

namespace forerun::compile {
namespace {

// Builds a joint graph node by node.
struct Sketch {
  JointGraph joint;

  ValueId given(int64_t elements, bool parameter = false, bool tangent = false) {
    joint.values.push_back({.elements = elements, .parameter = parameter, .tangent = tangent});
    return ValueId(joint.values.size() - 1);
  }
  ValueId node(NodeKind kind, std::vector<ValueId> reads, int64_t elements, bool backward = false) {
    Node node{.kind = kind,
              .flags = static_cast<uint8_t>(kind == NodeKind::library ? 0 : kComputedAgain | kFusible),
              .backward = backward,
              .elements = elements};
    for (const ValueId read : reads) node.reads.push_back({read, joint.value(read).elements});
    joint.values.push_back({.made_by = NodeId(joint.nodes.size()), .elements = elements});
    node.makes = {ValueId(joint.values.size() - 1)};
    joint.nodes.push_back(node);
    return node.makes[0];
  }
  ValueId pointwise(std::vector<ValueId> reads, int64_t elements, bool backward = false) {
    return node(NodeKind::pointwise, std::move(reads), elements, backward);
  }
  ValueId library(std::vector<ValueId> reads, int64_t elements, bool backward = false) {
    return node(NodeKind::library, std::move(reads), elements, backward);
  }
  Value& operator[](ValueId id) { return joint.values[id.value]; }
};

// y = gelu(x w) v: the backward pass reads gelu's input elementwise and its result in a product.
TEST(Partition, ComputesElementwiseWorkAgainAndKeepsWhatProductsRead) {
  Sketch s;
  const ValueId x = s.given(1000);
  const ValueId w = s.given(100, true);
  const ValueId product = s.library({x, w}, 4000);
  const ValueId twice = s.pointwise({product}, 4000);
  const ValueId active = s.pointwise({twice}, 4000);
  const ValueId result = s.library({active, w}, 1000);
  s[result].forward_result = true;
  const ValueId tangent = s.given(1000, false, true);
  const ValueId weight = s.library({tangent, active}, 100, true);  // needs it in memory
  const ValueId through = s.pointwise({tangent, twice}, 4000, true);
  const ValueId other = s.library({through, x}, 100, true);
  s[weight].backward_result = true;
  s[other].backward_result = true;
  const Partition parts = partition(s.joint);
  EXPECT_TRUE(parts.kept[active.value]);   // read by a product
  EXPECT_TRUE(parts.kept[product.value]);  // `twice` is computed from it again
  EXPECT_FALSE(parts.kept[twice.value]);
  EXPECT_TRUE(parts.kept[x.value]);
  EXPECT_TRUE(parts.in_forward[1] && parts.in_backward[1]);   // twice
  EXPECT_TRUE(parts.in_forward[0] && !parts.in_backward[0]);  // the product runs once
}

// Logits that are bounded elementwise: computed again in the backward pass, unless they are a result, which is stored anyway.
TEST(Partition, NeverComputesResultsAgain) {
  for (const bool returned : {false, true}) {
    Sketch s;
    const ValueId x = s.given(10);
    const ValueId product = s.library({x}, 4000);
    const ValueId bounded = s.pointwise({product}, 4000);
    s[bounded].returned = returned;
    const ValueId loss = s.node(NodeKind::reduction, {bounded}, 1);
    s[loss].forward_result = true;
    const ValueId tangent = s.given(1, false, true);
    const ValueId through = s.pointwise({tangent, bounded}, 4000, true);
    const ValueId gradient = s.pointwise({through, product}, 4000, true);
    s[gradient].backward_result = true;
    const Partition parts = partition(s.joint);
    EXPECT_TRUE(parts.kept[product.value]);
    EXPECT_EQ(parts.kept[bounded.value], returned);
    EXPECT_EQ(parts.in_backward[1], !returned);
  }
}

TEST(Partition, KeepsSmallResultsOfReductions) {
  Sketch s;
  const ValueId x = s.given(4096);
  const ValueId mean = s.node(NodeKind::reduction, {x}, 4);
  const ValueId centred = s.pointwise({x, mean}, 4096);
  s[centred].forward_result = true;
  const ValueId tangent = s.given(4096, false, true);
  const ValueId through = s.pointwise({tangent, mean, x}, 4096, true);
  s[through].backward_result = true;
  const Partition parts = partition(s.joint);
  EXPECT_TRUE(parts.kept[mean.value]);
  EXPECT_FALSE(parts.in_backward[0]);
}

// Whatever is kept, the backward pass can be run from it, and no library runs twice.
TEST(Partition, GivesTheBackwardPassAllItReads) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Sketch s;
    std::vector<ValueId> made = {s.given(64), s.given(64, true)};
    const auto any = [&] { return made[random() % made.size()]; };
    for (int i = 0; i < 12; ++i) {
      const auto elements = static_cast<int64_t>(1U << random() % 8);
      const std::vector<ValueId> reads = {any(), any()};
      made.push_back(random() % 3 == 0 ? s.library(reads, elements) : s.pointwise(reads, elements));
    }
    s[made.back()].forward_result = true;
    ValueId tangent = s.given(64, false, true);
    for (int i = 0; i < 8; ++i) {
      const std::vector<ValueId> reads = {tangent, any()};
      tangent = random() % 3 == 0 ? s.library(reads, 64, true) : s.pointwise(reads, 64, true);
    }
    s[tangent].backward_result = true;
    const Partition parts = partition(s.joint);
    for (size_t i = 0; i < s.joint.nodes.size(); ++i) {
      const Node& node = s.joint.nodes[i];
      if (!node.backward && node.kind == NodeKind::library) {
        ASSERT_FALSE(parts.in_backward[i]);
      }
      if (!parts.in_backward[i]) continue;
      for (const Read& read : node.reads) {
        const Value& value = s.joint.value(read.value);
        const bool there = value.tangent || parts.kept[read.value.value] ||
                           (value.made_by.valid() && parts.in_backward[value.made_by.value]);
        ASSERT_TRUE(there) << "round " << round << ", node " << i;
      }
    }
  }
}

}  // namespace
}  // namespace forerun::compile
