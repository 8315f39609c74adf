// What the papers of optimizations claim for them, and the experiment here that comes nearest: data/papers/optimizations.json.
//
//   {"schema": "forerun.papers.optimizations/1", "paper": "...", "daydream": {"mean_error": 0.08, "largest_error": 0.15},
//    "claims": [{"optimization": "p3", "source": "Jayarajan et al.", "claim": "as much as 25 %", "throughput": 1.25,
//                "differs": "another GPU", "model": "resnet50", "batch": 32, "gpu": "p100",
//                "before": ["parameter_server:workers=4"], "after": ["p3:workers=4"], "largest_over_gbps": ["4", "10"]},
//               {"optimization": "metaflow", "source": "...", "claim": "...", "cannot": "why it cannot be judged"}]}
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_file.h"
#include "base/result.h"

namespace forerun {

struct PublishedClaim {
  std::string optimization, source, claim;
  std::string cannot;     // why there is no experiment; empty: there is one
  double throughput = 1;  // in parts of that without the optimization, as published
  std::string differs;    // what is not as it was there
  std::string model, gpu;
  int64_t batch = 0;
  std::vector<std::string> before, after;  // as `--apply` takes them
  std::vector<std::string> gbps;           // the network's rates, of which the largest gain counts; empty: as applied
};

struct PublishedClaims {
  double daydream_mean = 0, daydream_largest = 0;  // errors of Daydream's own predictions
  std::vector<PublishedClaim> claims;
};
Result<PublishedClaims> published_claims();
Result<PublishedClaims> published_claims(JsonObject file);

}  // namespace forerun
