// Training runs that others published, as checks of what is computed: nothing is fitted to them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "scale/transformer.h"

namespace forerun::scale {

// Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM" (SC 2021), table
// 1: GPT models on DGX A100 nodes with eight HDR InfiniBand ports, sequences of 2048 tokens, layers checkpointed.
struct MegatronRun {
  const char* name;
  int64_t heads, hidden, layers, tensor, pipeline, gpus, batch;
  double teraflops;  // of each GPU, by the paper's formula, which counts the repeated forward pass
};
std::span<const MegatronRun> megatron_runs();

Transformer transformer_of(const MegatronRun& run);
double step_seconds(const MegatronRun& run);

// MosaicML's LLM Foundry: MPT models on A100 and H100 with FSDP. A CSV file whose header names the columns:
//   Model,SeqLen (T),# GPUs,GPU,...,MicroBatchSize,GradAccum,GlobalBatchSize,Throughput (S/s),...
struct FoundryRun {
  std::string model;  // "7b"
  std::string gpu;    // as the device catalogue has it
  int64_t sequence = 0;
  int64_t gpus = 0;
  int64_t micro_batch = 0;
  int64_t batch = 0;
  int zero = 3;
  bool checkpoint = false;
  double tokens_per_second = 0;
};
// Runs in 8-bit precision and of unknown models are passed over and counted.
struct FoundryRuns {
  std::vector<FoundryRun> runs;
  int64_t passed_over = 0;
};
Result<FoundryRuns> read_foundry_runs(const std::string& path);
Result<FoundryRuns> foundry_runs_from_text(std::string_view text, const std::string& name);

// Its shape; an Error for an unknown name.
Result<Transformer> transformer_of(const FoundryRun& run);

}  // namespace forerun::scale
