// Measured throughputs of data-parallel training by schedule and network, as HKBU's benchmark of distributed training
// tabulates them (Shi et al., "A Quantitative Survey of Communication Optimizations in Distributed Deep Learning", 2020).
//
//   dnn,bs_per_gpu,connection,method,gpus,samples_per_s,std
//   ResNet-50,64,10GbE with TCP/IP,WFBP-A2A,8,1795.740,2.67
// Columns are found by name; samples_per_s is that of all GPUs together. The last column may be empty or missing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace forerun {

struct ThroughputRow {
  std::string model, connection, method;
  int64_t batch = 0;  // of a GPU
  int64_t gpus = 0;
  double samples_per_second = 0;
};

Result<std::vector<ThroughputRow>> read_throughputs(const std::string& path);
Result<std::vector<ThroughputRow>> throughputs_from_text(std::string_view text, const std::string& name);

}  // namespace forerun
