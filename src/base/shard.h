// Shard: which cases of a long question are done here, where several processes or machines share it.
//
// Cases are numbered from 0 in the order in which one machine would answer them. Case k belongs to shard k mod N: neighbours,
// which cost about the same (the last axis of a sweep changes fastest), go to different shards, so that all end at about the
// same time. ShardedWork says which question it is: parts of two questions that differ in anything are never put together.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace forerun {

struct Shard {
  size_t index = 0;  // from 0
  size_t count = 1;

  [[nodiscard]] bool has(size_t number) const { return number % count == index; }
  // How many of so many cases are its own, and the number of its n-th.
  [[nodiscard]] size_t cases_of(size_t cases) const { return index < cases ? (cases - index - 1) / count + 1 : 0; }
  [[nodiscard]] size_t number(size_t n) const { return index + n * count; }
  [[nodiscard]] std::string text() const;  // "2/8"
  friend bool operator==(const Shard&, const Shard&) = default;
};

inline constexpr size_t kMostShards = 1'000'000;

// "I/N", from 0/N to (N-1)/N.
Result<Shard> parse_shard(std::string_view text);

// What the answers to the cases depend on, as far as a program can know it.
struct ShardedWork {
  using Words = std::vector<std::pair<std::string, std::vector<std::string>>>;

  std::string verb;          // "sweep"
  size_t cases = 0;          // in all shards
  std::string program;       // version and build
  std::string data;          // fingerprint of what it reads of the data folder
  Words request;             // options that were given, by name
  Words files;               // that the request names, with the fingerprint of each
  std::string about = "{}";  // JSON: what whoever merges has to know beside the cases
};

// What differs, in words, where anything does: "--over is 'batch=1..4' there and 'batch=1..8' here".
std::optional<std::string> difference(const ShardedWork& there, const ShardedWork& here);

}  // namespace forerun
