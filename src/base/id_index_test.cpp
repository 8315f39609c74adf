#include "base/id_index.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace forerun {
namespace {

// Beside std::unordered_map, with hashes that are all the same, nearly, and spread.
TEST(IdIndex, FindsWhatWasAdded) {
  for (const uint64_t different : {uint64_t{1}, uint64_t{3}, uint64_t{1} << 40}) {
    std::mt19937_64 random(7);
    std::vector<uint64_t> values;
    IdIndex index;
    std::unordered_map<uint64_t, uint32_t> reference;
    for (int i = 0; i < 2000; ++i) {
      const uint64_t value = random() % 1500;
      const uint64_t hash = mixed(value % different, 1);
      const uint32_t found = index.find(hash, [&](uint32_t id) { return values[id] == value; });
      const auto known = reference.find(value);
      ASSERT_EQ(found, known == reference.end() ? IdIndex::kNone : known->second) << i;
      if (found != IdIndex::kNone) continue;
      values.push_back(value);
      index.add(hash, static_cast<uint32_t>(values.size() - 1));
      reference.emplace(value, static_cast<uint32_t>(values.size() - 1));
    }
  }
}

}  // namespace
}  // namespace forerun
