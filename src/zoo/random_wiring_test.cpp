// Expected values were printed by CPython 3.11 and networkx 3.6.
#include "zoo/random_wiring.h"

#include <gtest/gtest.h>

namespace forerun::zoo {
namespace {

// Tells wirings apart that differ in any edge or in the order of any node's neighbours.
size_t fingerprint(const Wiring& wiring) {
  size_t sum = 0;
  for (size_t i = 0; i < wiring.size(); ++i) {
    for (size_t k = 0; k < wiring[i].size(); ++k) sum += (i + 1) * (k + 1) * wiring[i][k];
  }
  return sum;
}

TEST(PythonRandom, DrawsAsPythonDoes) {
  PythonRandom random(1);
  EXPECT_DOUBLE_EQ(random.uniform(), 0.13436424411240122);
  EXPECT_DOUBLE_EQ(random.uniform(), 0.8474337369372327);
  std::vector<size_t> choices;
  for (int i = 0; i < 8; ++i) choices.push_back(random.below(10));
  EXPECT_EQ(choices, (std::vector<size_t>{1, 4, 1, 7, 7, 7, 6, 3}));
}

TEST(RandomWiring, WattsStrogatz) {
  const std::optional<Wiring> wiring = watts_strogatz(100, 4, 0.75, 7);
  ASSERT_TRUE(wiring);
  EXPECT_EQ(fingerprint(*wiring), 2858832U);
  EXPECT_EQ(wiring->back(), (std::vector<size_t>{74, 67, 7, 66, 72, 12}));
}

TEST(RandomWiring, WattsStrogatzWhereEveryNodeIsFull) {
  const Wiring expected = {{1, 4, 2, 3}, {0, 2, 3, 4}, {1, 3, 0, 4}, {2, 4, 1, 0}, {3, 0, 2, 1}};
  EXPECT_EQ(watts_strogatz(5, 4, 0.75, 7), expected);
}

TEST(RandomWiring, ErdosRenyi) { EXPECT_EQ(fingerprint(erdos_renyi(100, 0.2, 7)), 74994538U); }

// Beyond 32 nodes CPython's sets no longer iterate in ascending order, and the order feeds later draws.
TEST(RandomWiring, BarabasiAlbert) {
  const Wiring wiring = barabasi_albert(100, 5, 7);
  EXPECT_EQ(wiring.back(), (std::vector<size_t>{1, 39, 12, 25, 31}));
  EXPECT_EQ(fingerprint(wiring), 8533997U);
}

}  // namespace
}  // namespace forerun::zoo
