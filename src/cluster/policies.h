// The policies there are, by name.
#pragma once

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
  bool by_priority = false;  // jobs of larger Job::priority go first
};

const std::vector<PolicyEntry>& policies();

// A policy by its name and options ("fifo", "tiresias:q1=3600"); an unknown name is answered with the nearest ones.
Result<std::unique_ptr<Policy>> make_policy(const std::string& text);

// Whether the policy of such a name and options looks at priorities.
bool goes_by_priority(const std::string& text);

}  // namespace forerun::cluster
