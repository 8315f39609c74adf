// Rows of the study of few traces (lab/learn/few_study.h): how far a predictor is off on a GPU that it has seen a few traces of. They
// are kept as lines of JSON, data/weights/SUITE/few.jsonl:
//
//   {"study": "few", "predictor": "ets", "start": "meta", "gpu": "NVIDIA H200", "learned_from": ["2080Ti", "T4"], "few": 5, "draws": 3, "test": 234,
//    "errors": [{"epochs": 0, "mre": 0.4, "least": 0.4, "most": 0.4}, {"epochs": 10, ...}], "seconds": 12.5, "settings": {"target": "ratio"},
//    "rate": 0.001, "batch": 128, "seed": 1, "device": "Neoverse-N1, 2 cores, cpu", "date": "2026-11-17", "data": "..."}
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/dataset/predictor.h"

namespace forerun::learn {

inline constexpr const char* kFewStudy = "few";
inline constexpr const char* kFewFile = "few.jsonl";
inline constexpr const char* kMetaStart = "meta";        // learned for the purpose (TrainOptions::meta)
inline constexpr const char* kJointStart = "joint";      // trained on all GPUs together
inline constexpr const char* kScratchStart = "scratch";  // from nothing

// MRE of the iteration time on test families after so many epochs on the few traces, over the draws of those.
struct FewError {
  int64_t epochs = 0;
  double mre = 0;  // mean
  double least = 0, most = 0;
};

struct FewRow {
  std::string predictor;  // "ets"
  std::string start;
  std::string gpu;                        // that was left out, and is judged on
  std::vector<std::string> learned_from;  // GPUs that the start has seen
  int64_t few = 0;                        // traces of the new GPU
  int64_t draws = 0;                      // of those
  int64_t test = 0;                       // iterations judged
  std::vector<FewError> errors;           // by epochs
  double seconds = 0;                     // of all trainings
  Settings settings;
  double rate = 0;  // 0: the predictor's own, as batch
  int64_t batch = 0;
  uint64_t seed = 1;
  std::string device, date, data;  // what it ran on, when, DataSet::source of the new GPU
};

std::string to_json_line(const FewRow& row);
// Rows of a file; none where there is no such file. A line that is none is an Error that names it.
Result<std::vector<FewRow>> read_few_rows(const std::string& path);
// Adds rows to the file, which need not be there; those of the same question are replaced: start, GPUs, settings and number of traces.
Status keep_few_rows(const std::string& path, const std::vector<FewRow>& rows);

// A table for each GPU and what was learned from: starts and numbers of traces, and the error by epochs.
std::string to_text(const std::vector<FewRow>& rows);

}  // namespace forerun::learn
