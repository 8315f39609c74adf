// Which nodes share a kernel, and what the kernel reads: small graphs by hand.
#include "compile/fusion.h"

#include <gtest/gtest.h>

#include <vector>

namespace forerun::compile {
namespace {

struct FusionSketch {
  JointGraph joint;

  ValueId given(int64_t elements) {
    joint.values.push_back({.elements = elements});
    return ValueId(joint.values.size() - 1);
  }
  ValueId pointwise(std::vector<Read> reads, int64_t elements) {
    Node node{.elements = elements, .reads = std::move(reads)};
    joint.values.push_back({.made_by = NodeId(joint.nodes.size()), .elements = elements, .forward_result = true});
    node.makes = {ValueId(joint.values.size() - 1)};
    joint.nodes.push_back(node);
    return node.makes[0];
  }
  std::vector<Kernel> fused() {
    return fuse(joint, std::vector<bool>(joint.nodes.size(), true), std::vector<bool>(joint.values.size(), true));
  }
};

constexpr int64_t kAll = 3000;

TEST(Fusion, JoinsWhatReadsTheSame) {
  FusionSketch s;
  const ValueId x = s.given(kAll);
  s.pointwise({{x, kAll}}, kAll);
  s.pointwise({{x, kAll}}, kAll);
  const std::vector<Kernel> kernels = s.fused();
  ASSERT_EQ(kernels.size(), 1u);
  ASSERT_EQ(kernels[0].reads.size(), 1u);
  EXPECT_EQ(kernels[0].reads[0].elements, kAll);
}

// Queries, keys and values of one product: each is another part of it, which nothing shares.
TEST(Fusion, LeavesApartWhatReadsOtherParts) {
  FusionSketch s;
  const ValueId x = s.given(kAll);
  for (int i = 0; i < 3; ++i) s.pointwise({{x, kAll / 3}}, kAll / 3);
  const std::vector<Kernel> kernels = s.fused();
  ASSERT_EQ(kernels.size(), 3u);
  for (const Kernel& kernel : kernels) EXPECT_EQ(kernel.reads[0].elements, kAll / 3);
}

// A gate and what it lets through are two parts: both are read. No more is read than there is.
TEST(Fusion, AddsUpThePartsThatAKernelReads) {
  FusionSketch s;
  const ValueId x = s.given(kAll);
  s.pointwise({{x, kAll / 3}, {x, kAll / 3}}, kAll / 3);
  EXPECT_EQ(s.fused()[0].reads[0].elements, 2 * kAll / 3);
  s = {};
  const ValueId y = s.given(kAll);
  s.pointwise({{y, kAll / 2}, {y, kAll / 2}, {y, kAll / 2}}, kAll / 2);
  EXPECT_EQ(s.fused()[0].reads[0].elements, kAll);
}

// One reader across the order in which a value lies makes the read slow for the kernel.
TEST(Fusion, KeepsThatAReadIsAcross) {
  FusionSketch s;
  const ValueId x = s.given(kAll);
  s.pointwise({{x, kAll}}, kAll);
  s.pointwise({{.value = x, .elements = kAll, .across = true}}, kAll);
  const std::vector<Kernel> kernels = s.fused();
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_TRUE(kernels[0].reads[0].across);
}

}  // namespace
}  // namespace forerun::compile
