// ClaimsAccuracy: what optimizations bring here beside what their papers claim, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "lab/papers/published_claims.h"

namespace forerun {

struct ClaimRow {
  PublishedClaim claim;
  double throughput = 0;  // here, in parts of that without the optimization; 0 where it cannot be judged
  std::string at_gbps;    // where the claim is about the largest gain over rates of the network
};

// How well variants of a measured step are predicted, Daydream's own figure beside it.
struct DaydreamError {
  double mean = 0, largest = 0;                      // there
  double here = 0, here_largest = 0;                 // over all optimizations of `eval --suite whatif`
  double gpu_bound_here = 0, gpu_bound_largest = 0;  // over those where the GPU decides
};

// Mixed precision of measured steps by Daydream's rule (products take a third, the rest half) and as it is predicted here:
// mean and largest error of gains, in shares of 1.
struct AmpRuleError {
  int64_t cases = 0;
  double rule_mean = 0, rule_largest = 0, rule_gpu_mean = 0;
  double mean = 0, largest = 0, gpu_mean = 0;
};

struct ClaimsAccuracy {
  DaydreamError errors;
  AmpRuleError amp;
  std::vector<ClaimRow> rows;
};

std::string to_text(const ClaimsAccuracy& accuracy);
std::string to_json(const ClaimsAccuracy& accuracy);  // one object

}  // namespace forerun
