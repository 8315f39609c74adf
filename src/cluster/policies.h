// The policies there are, by name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/options_text.h"
#include "base/result.h"
#include "cluster/policy.h"

namespace forerun::cluster {

inline constexpr double kLongestRound = 1e7;  // seconds, of rounds, leases and intervals; the shortest is a second

struct PolicyEntry {
  const char* name;
  const char* description;  // one sentence
  std::unique_ptr<Policy> (*make)(OptionReader& options);
  bool by_priority = false;   // jobs of larger Job::priority go first
  bool needs_solver = false;  // of linear programs (cluster/linear_program.h)
};

// Makes a policy of a caller's own, which is neither named nor a file.
using PolicyMaker = std::function<std::unique_ptr<Policy>()>;

const std::vector<PolicyEntry>& policies();

// A policy as it was asked for, with options that are known and in range.
struct PolicySpec {
  const PolicyEntry* entry = nullptr;
  std::string file;  // of a policy that is none of ours; else empty
  KeyValues options;
  std::string text;  // as it was written
  PolicyMaker own;   // of a caller's own; else empty
};

// "fifo", "2d-las:q1=3600", or a file, "./mine.py:timeout=60"; an unknown name is answered with the nearest ones.
Result<PolicySpec> parse_policy(const std::string& text);

// A policy of the caller's own, under that name.
PolicySpec own_policy(const std::string& name, PolicyMaker make);

// A policy that has seen no job yet: a simulation needs one of its own.
std::unique_ptr<Policy> make_policy(const PolicySpec& spec);
// The same from text, for who simulates once.
Result<std::unique_ptr<Policy>> make_policy(const std::string& text);

}  // namespace forerun::cluster
