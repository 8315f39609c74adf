// Training runs that others published, as checks of what is computed: nothing is fitted to them. Those typed from papers lie in
// data/papers, whose README.md names paper, table and unit of each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_file.h"
#include "base/result.h"
#include "scale/plan.h"
#include "scale/transformer.h"

namespace forerun::scale {

// GPT models of Megatron on DGX A100 nodes, layers checkpointed: data/papers/megatron.json.
//   {"schema": "forerun.papers.megatron/1", "paper": "...", "gpu": "a100-80gb", "network": "8xhdr", "sequence": 2048,
//    "vocabulary": 51200, "runs": [{"name": "1.7 B", "heads": 24, "hidden": 2304, "layers": 24, "tensor": 1,
//                                   "pipeline": 1, "gpus": 32, "batch": 512, "micro_batch": 16, "chunks": 1,
//                                   "overlap": true, "teraflops_per_gpu": 137}]}
struct MegatronRun {
  std::string name;
  int64_t heads = 0, hidden = 0, layers = 0, tensor = 0, pipeline = 0, gpus = 0, batch = 0, micro_batch = 0, chunks = 0;
  bool overlap = false;  // gradients travel during the backward pass
  double teraflops = 0;  // of each GPU, by the paper's formula, which counts the repeated forward pass
};
struct MegatronTable {
  std::string gpu;      // as the device catalogue has it
  std::string network;  // of a node
  int64_t sequence = 0, vocab = 0;
  std::vector<MegatronRun> runs;
};
Result<MegatronTable> megatron_table();
Result<MegatronTable> megatron_table(JsonObject file);

Transformer transformer_of(const MegatronRun& run, const MegatronTable& table);
Plan plan_of(const MegatronRun& run);
double step_seconds(const MegatronRun& run, const MegatronTable& table);

// The mean error of vTrain on one machine, as its authors published it: data/papers/vtrain.json.
Result<double> vtrain_error();
Result<double> vtrain_error(JsonObject file);

// Shapes of MosaicML's MPT models: data/papers/mpt.json.
//   {"schema": "forerun.papers.mpt/1", "source": "...", "vocabulary": 50368,
//    "models": [{"name": "125m", "hidden": 768, "layers": 12, "heads": 12}]}
struct MptModels {
  struct Shape {
    std::string name;
    int64_t hidden = 0, layers = 0, heads = 0;
  };
  int64_t vocab = 0;
  std::vector<Shape> shapes;

  [[nodiscard]] const Shape* find(const std::string& name) const;  // null where there is none
};
Result<MptModels> mpt_models();
Result<MptModels> mpt_models(JsonObject file);

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
Result<FoundryRuns> read_foundry_runs(const std::string& path, const MptModels& models);
Result<FoundryRuns> foundry_runs_from_text(std::string_view text, const std::string& name, const MptModels& models);

// Its shape; an Error for an unknown name.
Result<Transformer> transformer_of(const FoundryRun& run, const MptModels& models);

}  // namespace forerun::scale
