#include "base/ref.h"

#include <gtest/gtest.h>

#include <vector>

namespace forerun {
namespace {

struct Told : Counted {
  explicit Told(int& count) : alive(&count) { ++count; }
  Told(const Told& other) : Counted(other), alive(other.alive) { ++*alive; }
  Told& operator=(const Told&) = delete;
  ~Told() { --*alive; }
  int* alive;
  Ref<Told> next;
};

TEST(Ref, TheLastHolderDeletes) {
  int alive = 0;
  {
    Ref<Told> a = Ref<Told>::make(alive);
    EXPECT_EQ(a.use_count(), 1U);
    Ref<Told> b = a;
    EXPECT_EQ(a.use_count(), 2U);
    EXPECT_TRUE(a == b);
    a = nullptr;
    EXPECT_TRUE(a == nullptr);
    EXPECT_EQ(b.use_count(), 1U);
    Ref<Told>& self = b;
    b = self;  // to itself
    EXPECT_EQ(b.use_count(), 1U);
    Ref<Told> copy = Ref<Told>::make(*b);  // of what it points to: with holders of its own
    EXPECT_EQ(copy.use_count(), 1U);
    EXPECT_EQ(alive, 2);
    copy->next = b;
    b = std::move(copy);  // the last way to the first is through the second
    EXPECT_FALSE(copy);   // NOLINT(bugprone-use-after-move): what a move leaves is part of the promise
    EXPECT_EQ(alive, 2);
    std::vector<Ref<Told>> many(10, b);
    EXPECT_EQ(b.use_count(), 11U);
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace forerun
