// Which nodes share a kernel, and what the kernel reads: small graphs by hand.
#include "compile/fusion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace forerun::compile {
namespace {

struct FusionSketch {
  JointGraph joint;

  ValueId given(int64_t elements) {
    joint.values.push_back({.elements = elements});
    return ValueId(joint.values.size() - 1);
  }
  ValueId node(Node made) {
    joint.values.push_back({.made_by = NodeId(joint.nodes.size()), .elements = made.elements, .forward_result = true});
    made.makes = {ValueId(joint.values.size() - 1)};
    joint.nodes.push_back(made);
    return made.makes[0];
  }
  ValueId pointwise(std::vector<Read> reads, int64_t elements) {
    return node({.elements = elements, .reads = std::move(reads)});
  }
  ValueId reduction(std::vector<Read> reads, int64_t results, int64_t reduced) {
    return node({.kind = NodeKind::reduction, .elements = results, .reduced = reduced, .reads = std::move(reads)});
  }
  std::vector<Kernel> fused() { return fused_with(std::vector<bool>(joint.values.size(), true)); }
  // With these alone read beyond the pass.
  std::vector<Kernel> fused_for(const std::vector<ValueId>& results) {
    std::vector<bool> stored(joint.values.size());
    for (const ValueId result : results) stored[result.value] = true;
    return fused_with(stored);
  }

 private:
  std::vector<Kernel> fused_with(const std::vector<bool>& stored) {
    return fuse(joint, std::vector<bool>(joint.nodes.size(), true), stored);
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

// What an enlarged image's gradient adds to four neighbours is one kernel, also where that gradient is part of another value.
TEST(Fusion, JoinsSharesOfAnEnlargedImage) {
  FusionSketch s;
  const ValueId x = s.given(kAll);
  for (int i = 0; i < 4; ++i) {
    const ValueId zeros = s.pointwise({}, kAll / 12);
    s.node({.flags = kScatters, .op = OpId(7), .elements = kAll / 3, .reads = {{x, kAll / 3}, {zeros, kAll / 3}}});
  }
  const std::vector<Kernel> kernels = s.fused();
  const auto adds = [](const Kernel& kernel) { return kernel.elements == kAll / 3; };
  ASSERT_EQ(std::count_if(kernels.begin(), kernels.end(), adds), 1);
  EXPECT_EQ(std::find_if(kernels.begin(), kernels.end(), adds)->nodes.size(), 4u);
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

// Rows are none to Inductor where something is read across, nor, where they are many, where what is reduced is read in parts, also through
// what is computed within; what elementwise work alone reads in parts does not count.
TEST(Fusion, TellsRowsFromWhatIsReadInParts) {
  constexpr int64_t kRow = 128;
  const auto kernel = [](int64_t rows, bool parted, bool across) {
    FusionSketch s;
    const ValueId x = s.given(rows * kRow), bias = s.given(rows), other = s.given(rows);
    const ValueId sum = s.pointwise(
        {{.value = x, .elements = rows * kRow, .across = across}, {.value = bias, .elements = rows, .parted = parted}},
        rows * kRow);
    const ValueId most = s.reduction({{sum, rows * kRow}}, rows, kRow);
    const ValueId scaled =
        s.pointwise({{x, rows * kRow}, {most, rows}, {.value = other, .elements = rows, .parted = true}}, rows * kRow);
    const std::vector<Kernel> kernels = s.fused_for({scaled});
    EXPECT_EQ(kernels.size(), 1u);
    return kernels[0];
  };
  EXPECT_FALSE(is_row(kernel(10'000, true, false)));
  EXPECT_TRUE(is_row(kernel(10'000, false, false)));
  EXPECT_TRUE(is_row(kernel(8'000, true, false)));
  EXPECT_FALSE(is_row(kernel(8'000, false, true)));
}

// What is read by two is computed in both where that is little, and stored where it reads much, takes many steps, or is looked at again.
TEST(Fusion, StoresWhatIsMuchToCompute) {
  const auto nodes = [](size_t reads, int steps, bool again) {
    FusionSketch s;
    std::vector<Read> from;
    for (size_t i = 0; i < reads; ++i) from.push_back({s.given(kAll), kAll});
    const ValueId made = s.node({.elements = kAll, .steps = steps, .reads = from});
    const ValueId result = s.pointwise({{.value = made, .elements = kAll, .again = again}}, kAll);
    const std::vector<Kernel> kernels = s.fused_for({result});
    EXPECT_EQ(kernels.size(), 1u);
    return kernels[0].nodes.size();
  };
  EXPECT_EQ(nodes(5, 1, false), 1u);
  EXPECT_EQ(nodes(5, 1, true), 2u);
  EXPECT_EQ(nodes(4, 1, true), 1u);
  EXPECT_EQ(nodes(8, 1, false), 1u);
  EXPECT_EQ(nodes(9, 1, false), 2u);
  EXPECT_EQ(nodes(2, 28, false), 1u);
  EXPECT_EQ(nodes(2, 29, false), 2u);
  EXPECT_EQ(nodes(1, 40, false), 1u);  // of one input alone it is computed again
}

// A mask that is drawn beside a stored input joins the kernel that reads both.
TEST(Fusion, JoinsTwoKernelsThatANodeReads) {
  FusionSketch s;
  const ValueId x = s.given(kAll);
  const ValueId wide = s.pointwise({{x, kAll}}, kAll);
  const ValueId mask = s.node({.flags = kFusible | kStored, .elements = kAll});
  s.pointwise({{wide, kAll}, {mask, kAll}}, kAll);
  EXPECT_EQ(s.fused().size(), 1u);
  s.pointwise({{mask, kAll}}, kAll);
  EXPECT_EQ(s.fused().size(), 1u);
}

// A kernel that was taken in is nobody's to join: what reads the same as it did goes to the one that has it.
TEST(Fusion, LeavesNothingBehindOfWhatWasTakenIn) {
  FusionSketch s;
  const ValueId x = s.given(kAll);
  const ValueId y = s.given(kAll);
  const ValueId first = s.pointwise({{x, kAll}}, kAll);
  const ValueId second = s.pointwise({{y, kAll}}, kAll);
  s.pointwise({{first, kAll}, {second, kAll}}, kAll);
  s.pointwise({{y, kAll}}, kAll);
  const std::vector<Kernel> kernels = s.fused();
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].nodes.size(), 4u);
}

// Of many nodes at random, whatever joins whatever: each kernel can run once those that it needs have.
TEST(Fusion, MakesNoCircles) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    FusionSketch s;
    std::vector<ValueId> known;
    for (int i = 0; i < 4; ++i) known.push_back(s.given(kAll));
    for (int i = 0; i < 120; ++i) {
      std::vector<Read> reads;
      for (uint32_t r = 0; r <= random() % 3; ++r)
        reads.push_back({known[known.size() - 1 - random() % std::min<size_t>(known.size(), 12)], kAll});
      const NodeKind kind = random() % 4 == 0 ? NodeKind::library : NodeKind::pointwise;
      known.push_back(s.node({.kind = kind, .elements = kAll, .reads = reads}));
    }
    const std::vector<Kernel> kernels = s.fused();
    std::vector<bool> made(s.joint.values.size());
    for (int i = 0; i < 4; ++i) made[static_cast<size_t>(i)] = true;
    size_t nodes = 0;
    size_t ran = 0;
    std::vector<bool> done(kernels.size());
    for (bool more = true; more;) {
      more = false;
      for (size_t k = 0; k < kernels.size(); ++k) {
        const auto is_made = [&](const Read& read) { return made[read.value.value]; };
        if (done[k] || !std::all_of(kernels[k].reads.begin(), kernels[k].reads.end(), is_made)) continue;
        for (const NodeId id : kernels[k].nodes) made[s.joint.node(id).makes[0].value] = true;
        nodes += kernels[k].nodes.size();
        done[k] = more = true;
        ++ran;
      }
    }
    EXPECT_EQ(ran, kernels.size());
    EXPECT_EQ(nodes, s.joint.nodes.size());
  }
}

// What a loop that reduces long rows made, and the loop behind it reads, has to be written; short rows are held.
TEST(Fusion, WritesWhatASecondLoopReads) {
  const auto written = [](int64_t width) {
    FusionSketch s;
    const int64_t all = 4 * width;
    const ValueId x = s.given(all);
    const ValueId wide = s.node({.flags = kFusible | kStored, .elements = all, .reads = {{x, all}}});
    const ValueId most = s.reduction({{wide, all}}, 4, width);
    const ValueId result = s.pointwise({{wide, all}, {most, 4}}, all);
    const std::vector<Kernel> kernels = s.fused_for({result});
    EXPECT_EQ(kernels.size(), 1u);
    const std::vector<ValueId>& writes = kernels[0].writes;
    return std::find(writes.begin(), writes.end(), wide) != writes.end();
  };
  EXPECT_FALSE(written(1024));
  EXPECT_TRUE(written(1500));
}

}  // namespace
}  // namespace forerun::compile
