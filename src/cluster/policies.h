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

// The value of an option; an option that nobody asks for is an Error of make_policy.
class OptionReader {
 public:
  explicit OptionReader(const PolicyOptions& options) : options_(options), used_(options.size(), false) {}
  double number(std::string_view name, double otherwise);
  [[nodiscard]] std::vector<std::string> unused() const;
  [[nodiscard]] const std::vector<std::string>& known() const { return known_; }

 private:
  const PolicyOptions& options_;
  std::vector<bool> used_;
  std::vector<std::string> known_;
};

struct PolicyEntry {
  const char* name;
  const char* description;  // one sentence
  std::unique_ptr<Policy> (*make)(OptionReader& options);
};

const std::vector<PolicyEntry>& policies();

// A policy by its name and options ("fifo", "tiresias:q1=3600"); an unknown name is answered with the nearest ones.
Result<std::unique_ptr<Policy>> make_policy(const std::string& text);

}  // namespace forerun::cluster
