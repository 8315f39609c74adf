#include "serve/aside.h"

#include <gtest/gtest.h>

#include <latch>
#include <vector>

namespace forerun::serve {
namespace {

TEST(Aside, DoesAllInOrderAndTakesNoMoreThanItsLimits) {
  std::vector<int> done;
  std::latch begun(1), go(1);
  Aside aside({.waiting = 2, .bytes = 100});
  ASSERT_TRUE(aside.add(0, [&] {
    begun.count_down();
    go.wait();
    done.push_back(1);
  }));
  begun.wait();  // the first is at work: two may wait
  EXPECT_FALSE(aside.add(101, [] {})) << "more bytes than it holds";
  EXPECT_TRUE(aside.add(60, [&] { done.push_back(2); }));
  EXPECT_FALSE(aside.add(60, [] {})) << "together with the other";
  EXPECT_TRUE(aside.add(40, [&] { done.push_back(3); }));
  EXPECT_FALSE(aside.add(0, [] {})) << "a third that waits";
  go.count_down();
  aside.stop();
  EXPECT_EQ(done, (std::vector{1, 2, 3}));
  EXPECT_FALSE(aside.add(0, [] {})) << "it has ended";
}

}  // namespace
}  // namespace forerun::serve
