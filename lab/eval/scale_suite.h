// Judges and fits the model of many GPUs on Megatron iterations that the authors of vTrain published:
// `forerun eval --suite vtrain` and `forerun calibrate scale`.
//
// Constants are fitted to the iterations on two GPUs, and to runs of one stage that the authors of Megatron-LM published; those
// on more GPUs are predicted.
#pragma once

#include <string>

#include "base/result.h"
#include "lab/accuracy/scale_accuracy.h"

namespace forerun {

struct ScaleSuiteOptions {
  std::string rows;        // CSV file of iterations; empty: the data set vtrain/ground_truth_single.csv
  std::string several;     // of those on several machines; empty: vtrain/ground_truth_multi.csv where it is there
  std::string tables;      // folder of all-reduce tables, for the fit; empty: the data set vtrain/trace/a100
  std::string efficiency;  // file of constants; empty: the data folder's
  std::string network = "4xhdr";  // of a node, where iterations used several
};

Result<ScaleAccuracy> evaluate_vtrain(const ScaleSuiteOptions& options);

// Published runs: GPT models of Megatron on 32 to 3,072 A100, and MPT models of LLM Foundry (`path`; empty: the data set
// llm_foundry/benchmark.csv), to which nothing is fitted.
Result<ScaleAccuracy> evaluate_megatron(const ScaleSuiteOptions& options);
Result<ScaleAccuracy> evaluate_foundry(const std::string& path);

struct ScaleCalibration {
  std::string file;
  int64_t rows = 0;
  double formulas_error = 0;
  double error = 0;
  ScaleAccuracy accuracy;
};
// Fits, writes to `out` (empty: the data folder's) and judges.
Result<ScaleCalibration> calibrate_scale(const ScaleSuiteOptions& options, const std::string& out);

}  // namespace forerun
