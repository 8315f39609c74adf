// Whose memory a value takes: writing over, handing on, and where that would cost more than it saves.
#include "compile/buffer_plan.h"

#include <gtest/gtest.h>

#include <numeric>

#include "compile/kernel_sketch.h"
#include "compile/run_order.h"

namespace forerun::compile {
namespace {

std::vector<ValueId> planned(const KernelSketch& s, const std::vector<ValueId>& results, bool allocates = false) {
  const std::vector<bool> stored = s.flags(results);
  const PassMemory memory(s.joint, s.kernels, stored, s.flags({}));
  std::vector<uint32_t> order(s.kernels.size());
  std::iota(order.begin(), order.end(), 0);
  const std::function<int64_t(ValueId)> bytes = [&](ValueId id) { return s.joint.value(id).bytes(); };
  const std::function<bool(const Kernel&)> itself = [&](const Kernel&) { return allocates; };
  return plan_buffers(s.joint, s.kernels, {stored, bytes, itself}, memory.estimate(order));
}

TEST(BufferPlan, WritesOverWhatNobodyReadsAnyMore) {
  KernelSketch s;
  const ValueId x = s.given(100);
  const ValueId a = s.kernel({x}, 100);
  const ValueId b = s.kernel({a}, 100, true);
  const ValueId c = s.kernel({b}, 100, true);
  EXPECT_EQ(planned(s, {c})[b.value], a);
  EXPECT_EQ(planned(s, {c})[c.value], b);
  EXPECT_FALSE(planned(s, {b, c})[c.value].valid());  // somebody else reads b
  EXPECT_FALSE(planned(s, {c})[a.value].valid());     // x is the caller's
  s.joint.values[a.value].dtype = DType::int32;       // as large, but of another type
  EXPECT_FALSE(planned(s, {c})[b.value].valid());
}

TEST(BufferPlan, HandsOnWhatWasFreed) {
  KernelSketch s;
  const ValueId x = s.given(100);
  const ValueId a = s.kernel({x}, 100);
  const ValueId small = s.kernel({a}, 1);
  const ValueId b = s.kernel({small}, 100);
  const ValueId wide = s.kernel({small, b}, 200);
  EXPECT_EQ(planned(s, {wide})[b.value], a);
  EXPECT_FALSE(planned(s, {wide})[wide.value].valid());  // nothing of that size was freed
}

TEST(BufferPlan, LibrariesThatAllocateTakeNothing) {
  KernelSketch s;
  const ValueId x = s.given(100);
  const ValueId a = s.kernel({x}, 100);
  const ValueId small = s.kernel({a}, 1);
  const ValueId b = s.kernel({small}, 100, false, NodeKind::library);
  EXPECT_EQ(planned(s, {b}, false)[b.value], a);
  EXPECT_FALSE(planned(s, {b}, true)[b.value].valid());
}

// Held from where it was freed to where it is wanted, over a kernel where the pass needs most: then it is given back.
TEST(BufferPlan, DoesNotHoldMemoryOverThePeak) {
  KernelSketch s;
  const ValueId x = s.given(100);
  const ValueId a = s.kernel({x}, 100);
  const ValueId small = s.kernel({a}, 1);
  const ValueId wide = s.kernel({small}, 1000);
  const ValueId end = s.kernel({wide}, 1);
  const ValueId b = s.kernel({end}, 100);
  EXPECT_FALSE(planned(s, {b})[b.value].valid());
}

}  // namespace
}  // namespace forerun::compile
