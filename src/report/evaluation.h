// How well predictors do on a suite, as text and JSON, with what the papers published beside it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learn/metrics.h"

namespace forerun {

// One predictor, as it was trained and saved.
struct SuiteRow {
  std::string predictor;  // "ets"
  std::string label;      // name of its folder: "ets", "ets-gru"
  std::string trained_on;
  std::vector<learn::Evaluation> evaluations;  // by quantity
  double seconds = 0;                          // for all predictions
};

struct SuiteResult {
  std::string suite;
  std::string data;  // what it is, in words
  int64_t examples = 0;
  std::vector<SuiteRow> rows;
};

// What a paper published for a system; shares of 1.
struct PublishedFigure {
  const char* suite;      // of ours that comes nearest
  const char* predictor;  // of ours that re-implements it
  const char* system;     // as the paper calls it
  learn::Target quantity;
  double mre;
  const char* setting;  // on which data
};
const std::vector<PublishedFigure>& published_figures();

std::string to_text(const SuiteResult& result);
std::string to_json(const SuiteResult& result);  // one object

}  // namespace forerun
