// How well predictors do on a suite, as text and JSON, with what the papers published beside it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/accuracy/published.h"
#include "lab/dataset/metrics.h"

namespace forerun {

// One predictor, as it was trained and saved.
struct SuiteRow {
  std::string predictor;  // "ets"; "forerun" for `forerun predict`
  std::string label;      // name of its folder: "ets", "ets-gru"
  std::string trained_on;
  std::vector<learn::Evaluation> evaluations;  // of the test split, by quantity
  std::vector<learn::Evaluation> ood;          // of what is in neither split
  double seconds = 0;                          // for all predictions
  double validation_error = 0;                 // MRE on families held out of the training; 0: not known
  bool kept = false;                           // a stored result of an earlier training, not computed now
};

struct SuiteResult {
  std::string suite;
  std::string split;  // what of it, in words; empty: its test split
  std::string data;   // what it is, in words
  int64_t examples = 0;
  int64_t ood = 0;
  bool ablations = false;      // show the papers' ablations too
  PublishedFigures published;  // of the suite
  std::vector<SuiteRow> rows;
  std::vector<std::string> problems;  // why something is not among the rows
};

std::string to_text(const SuiteResult& result);
std::string to_json(const SuiteResult& result);  // one object

}  // namespace forerun
