// The vTrain authors' tables: iterations of Megatron on A100 machines, and NCCL's all-reduce by size.
//
// Iterations are a CSV file whose header names the columns; their order does not matter, others are passed over:
//   # GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,
//   data parallelism,pipeline parallelism,iteration time (ms)
//   8,32,4,1024,16,24,1024,2,2,2,219.732754
// All-reduce tables are one file per number of GPUs (AR_GPU8_1M_1024M_LUT), the out-of-place time first:
//   size(B),count,type,time(ns),busbw(GB/s),time(ns),busbw(GB/s)
//   1048576,262144,float,44210,23.72,45100,23.25
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"

namespace forerun {

struct MegatronRow {
  int64_t gpus = 0;
  int64_t global_batch = 0;
  int64_t micro_batch = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t layers = 0;
  int64_t sequence = 0;
  int64_t tensor = 0;
  int64_t data = 0;
  int64_t pipeline = 0;
  Nanoseconds iteration;
};

struct AllReduceRow {
  int64_t ranks = 0;
  Bytes bytes;
  Nanoseconds time;
};

Result<std::vector<MegatronRow>> read_megatron_rows(const std::string& path);
Result<std::vector<MegatronRow>> megatron_rows_from_text(std::string_view text, const std::string& name);

// All AR_GPU*_LUT files of a folder, by number of GPUs and size.
Result<std::vector<AllReduceRow>> read_all_reduce_tables(const std::string& folder);

}  // namespace forerun
