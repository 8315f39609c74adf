// Runs on many GPUs whose plan and speed others published: data/scale/published_runs.json, whose card is data/scale/README.md.
//
//   {"schema": "forerun.published-runs/1", "rule": "...", "sources": [
//     {"source": "LLM Foundry", "document": "...", "half": "look", "stack": "pytorch", "rows": [
//       {"model": "MPT 7B", "zoo": "facebook/opt-125m", "set": "hidden=4096,...", "gpu": "h100", "gpus": 128, "network": "8xndr",
//        "precision": "amp_bf16", "plan": "zero3", "micro_batch": 6, "batch": 768, "recompute": 0, "sequence": 2048,
//        "tokens_per_second_per_gpu": 10475}]}]}
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json_file.h"
#include "base/result.h"

namespace forerun::scale {

struct PublishedPlan {
  std::string source;
  bool judges = false;  // else it may be looked at, and fitted to
  bool sure = true;     // false: it differs from what can be asked for
  bool megatron = false, plain_attention = false;
  std::string model;                                          // as people call it
  std::string zoo;                                            // as it is asked for
  std::vector<std::pair<std::string, std::string>> settings;  // of that
  std::string gpu, network, precision;                        // precision: may be empty
  std::string plan;
  int64_t gpus = 0, micro_batch = 0, batch = 0;  // micro_batch 0: not told
  double recompute = 0;                          // share of the layers that run forward twice
  bool search = false;                           // --search is held to it
  double step_seconds = 0;                       // as published, or what was published comes to
};

Result<std::vector<PublishedPlan>> published_plans();
Result<std::vector<PublishedPlan>> published_plans(JsonObject file);

}  // namespace forerun::scale
