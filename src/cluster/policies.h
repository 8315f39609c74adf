// The policies there are, by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/policy.h"

namespace forerun::cluster {

// What stands after a policy's name: "allox:alpha=0.5" gives {"alpha", "0.5"}.
struct PolicyOption {
  std::string name;
  double value = 0;
};
using PolicyOptions = std::vector<PolicyOption>;

// The value of an option. One that nobody asks for, or that is out of its range, is an Error of make_policy.
class OptionReader {
 public:
  explicit OptionReader(const PolicyOptions& options) : options_(options), used_(options.size(), false) {}
  double number(std::string_view name, double otherwise, double least, double most);
  int64_t whole(std::string_view name, int64_t otherwise, double least, double most);
  void refuse(std::string what) { faults_.push_back(std::move(what)); }
  [[nodiscard]] std::vector<std::string> unused() const;
  [[nodiscard]] const std::vector<std::string>& known() const { return known_; }
  [[nodiscard]] const std::vector<std::string>& faults() const { return faults_; }

 private:
  const PolicyOptions& options_;
  std::vector<bool> used_;
  std::vector<std::string> known_, faults_;
};

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
