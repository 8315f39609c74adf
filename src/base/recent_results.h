// RecentResults: what was found out last for keys of a fixed number of words, so that it is not computed again.
//
// Exact: a result is found by all words of its key, and is what was kept with them. Bounded: two generations of at most so many
// results each; where the younger one is full the older one is dropped, and what is asked for again moves to the younger. Not for
// several threads at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/id_index.h"

namespace forerun {

template <class Value>
class RecentResults {
 public:
  RecentResults(size_t key_words, size_t most) : words_(key_words), most_(most) {
    CHECK(key_words > 0 && most > 0, "a cache holds nothing");
  }

  std::optional<Value> find(std::span<const uint32_t> key) {
    const uint64_t hash = hash_of(key);
    if (const uint32_t at = younger_.find(key, hash); at != IdIndex::kNone) return younger_.values[at];
    const uint32_t at = older_.find(key, hash);
    if (at == IdIndex::kNone) return std::nullopt;
    const Value found = older_.values[at];
    add(key, hash, found);
    return found;
  }

  void keep(std::span<const uint32_t> key, const Value& value) {
    const uint64_t hash = hash_of(key);
    if (younger_.find(key, hash) == IdIndex::kNone) add(key, hash, value);
  }

  [[nodiscard]] size_t size() const { return younger_.values.size() + older_.values.size(); }

 private:
  struct Generation {
    IdIndex index;
    std::vector<uint32_t> keys;  // one behind the other
    std::vector<Value> values;

    [[nodiscard]] uint32_t find(std::span<const uint32_t> key, uint64_t hash) const {
      return index.find(hash, [&](uint32_t id) {
        return std::equal(key.begin(), key.end(), keys.begin() + static_cast<std::ptrdiff_t>(id * key.size()));
      });
    }
  };

  uint64_t hash_of(std::span<const uint32_t> key) const {
    CHECK(key.size() == words_, "a key of another length");
    uint64_t hash = words_;
    for (const uint32_t word : key) hash = mixed(hash, word);
    return hash;
  }

  void add(std::span<const uint32_t> key, uint64_t hash, const Value& value) {
    if (younger_.values.size() == most_) older_ = std::exchange(younger_, {});
    younger_.index.add(hash, static_cast<uint32_t>(younger_.values.size()));
    younger_.keys.insert(younger_.keys.end(), key.begin(), key.end());
    younger_.values.push_back(value);
  }

  size_t words_, most_;
  Generation younger_, older_;
};

}  // namespace forerun
