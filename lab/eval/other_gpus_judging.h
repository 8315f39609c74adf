// Judges predictors of other GPUs on ops that were timed there: which ops, from which origins, and how far off they are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/dataset/metrics.h"
#include "lab/dataset/other_gpus/other_gpu_predictor.h"

namespace forerun {

inline constexpr double kShortestJudgedUs = 200;  // latencies hold tens of microseconds of launching

// An op that was timed on several GPUs.
class SharedOps {
 public:
  explicit SharedOps(const learn::TimedWorkTable& table);

  // What the same op took on another GPU of the table; null where it was not timed there.
  [[nodiscard]] const learn::TimedWork* on(size_t gpu, const std::string& op, const learn::GpuWork& work) const;

 private:
  const learn::TimedWorkTable* table_;
  std::map<std::string, std::map<size_t, size_t>> places_;  // by op and sizes: row by GPU
};

// The same op has the same name: of ops, sizes and bytes.
std::string op_key(const std::string& op, const learn::GpuWork& work);

// An op to be judged by, with what it took on the GPU in question.
struct JudgedOp {
  std::string kind;
  std::string op;
  learn::GpuWork work;
  double us = 0;
};

// Measured and predicted times by kind of op. A predictor that needs an origin is asked from each of `origins` that the op was
// timed on, the others once.
using PairsByKind = std::map<std::string, std::vector<learn::PredictedPair>>;
PairsByKind judge_ops(learn::OtherGpuPredictor& predictor, const std::vector<JudgedOp>& ops, const Device& destination,
                      const learn::TimedWorkTable& table, const SharedOps& shared, const std::vector<size_t>& origins);

}  // namespace forerun
