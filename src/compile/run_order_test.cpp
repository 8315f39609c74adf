// In which order kernels run: by hand, with orders that PyTorch's own planner takes of the same sizes.
#include "compile/run_order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compile/kernel_sketch.h"

namespace forerun::compile {
namespace {

using Order = std::vector<uint32_t>;

TEST(RunOrder, TakesTheOrderWithTheLowestPeak) {
  KernelSketch s;
  const ValueId x = s.given(10);
  const ValueId left = s.kernel({x}, 1000);
  const ValueId right = s.kernel({x}, 1000);
  const ValueId small = s.kernel({left}, 1);
  const ValueId other = s.kernel({right}, 1);
  const PassMemory memory(s.joint, s.kernels, s.flags({small, other}), s.flags({}));
  EXPECT_EQ(memory.order(), (Order{0, 2, 1, 3}));  // both wide values are never there at once
  EXPECT_EQ(memory.estimate({0, 1, 2, 3}), (std::vector<int64_t>{4000, 8000, 8004, 4008}));
  EXPECT_EQ(memory.estimate({0, 2, 1, 3}), (std::vector<int64_t>{4000, 4004, 4004, 4008}));
}

TEST(RunOrder, StaysAsItIsWhereNoOtherIsBetter) {
  KernelSketch s;
  const ValueId x = s.given(10);
  const ValueId a = s.kernel({x}, 100);
  const ValueId b = s.kernel({x}, 50);
  const ValueId sum = s.kernel({a, b}, 100);
  const PassMemory memory(s.joint, s.kernels, s.flags({sum}), s.flags({}));
  EXPECT_EQ(memory.order(), (Order{0, 1, 2}));
}

TEST(RunOrder, PutsWhatAKernelNeedsBeforeIt) {
  KernelSketch s;
  const ValueId x = s.given(10);
  const ValueId last = s.kernel({x}, 100);
  const ValueId made = s.kernel({x}, 100);
  s.kernels[0].reads.push_back({made, 100});  // the first kernel got a node that reads what comes later
  const PassMemory memory(s.joint, s.kernels, s.flags({last}), s.flags({}));
  EXPECT_EQ(memory.order(), (Order{1, 0}));
}

// What was kept is there when the pass begins, and goes with its last reader; what the caller hands in is made first.
TEST(RunOrder, CountsWhatWasKeptAndBeginsWithWhatIsHandedIn) {
  KernelSketch s;
  const ValueId x = s.given(10);
  const ValueId kept = s.kernel({x}, 1000);
  s.kernels.clear();
  const ValueId first = s.kernel({kept}, 10);
  const ValueId handed = s.kernel({}, 10);
  s.joint.values[handed.value].tangent = true;
  const ValueId result = s.kernel({first, handed}, 10);
  const PassMemory memory(s.joint, s.kernels, s.flags({result}), s.flags({kept}));
  EXPECT_EQ(memory.order(), (Order{1, 0, 2}));
  EXPECT_EQ(memory.estimate({1, 0, 2}), (std::vector<int64_t>{4000, 4040, 80}));
}

// In the backward pass what is computed again runs right before whoever needs it.
TEST(RunOrder, ComputesAgainWhenItIsNeeded) {
  KernelSketch s;
  const ValueId x = s.given(10);
  const ValueId again = s.kernel({x}, 100);
  const ValueId first = s.kernel({x}, 100);
  const ValueId second = s.kernel({first, again}, 100);
  const auto order = [&] { return PassMemory(s.joint, s.kernels, s.flags({first, second}), s.flags({})).order(); };
  EXPECT_EQ(order(), (Order{0, 1, 2}));  // a forward pass
  for (const ValueId made : {first, second}) s.joint.nodes[s.joint.value(made).made_by.value].backward = true;
  EXPECT_EQ(order(), (Order{1, 0, 2}));
}

}  // namespace
}  // namespace forerun::compile
