// How well predictors do on a suite, as text and JSON, with what the papers published beside it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/accuracy/published.h"
#include "lab/dataset/few_rows.h"
#include "lab/dataset/metrics.h"
#include "lab/learn/predictors.h"

namespace forerun {

// One predictor, as it was trained and saved.
struct SuiteRow {
  std::string predictor;  // "ets"; "forerun" for `forerun predict`
  std::string label;      // name of its folder: "ets", "ets-gru"
  std::string trained_on;
  std::string learned_from;                    // kinds of data, in short: "iterations, op samples"; empty: not known
  std::vector<learn::Evaluation> evaluations;  // of the test split, by quantity
  std::vector<learn::Evaluation> ood;          // of what is in neither split
  std::vector<learn::Evaluation> randwire;     // of its randomly wired networks alone
  double seconds = 0;                          // for all predictions
  int64_t asked = 0;                           // of which there are so many
  learn::Training training = {};
  learn::Training pretraining = {};  // on simulation
  std::string weights;               // fingerprint of what it was loaded from; empty: not known
  bool kept = false;                 // a stored result of an earlier training, not computed now
  std::string kept_date;             // when; empty: not told
  bool stale = false;                // of other data than is here
};

struct SuiteResult {
  std::string suite;
  std::string split;  // what of it, in words; empty: its test split
  learn::Division division = {};
  std::string data;  // what it is, in words, with its fingerprint
  std::string date;  // when it was judged, and on what; empty: not told
  std::string machine;
  int64_t examples = 0;
  int64_t ood = 0;
  bool ablations = false;      // show the papers' ablations too
  PublishedFigures published;  // of the suite
  std::vector<SuiteRow> rows;
  std::vector<learn::FewRow> few;     // the suite's GPU met with a few traces; kept results
  std::vector<std::string> problems;  // why something is not among the rows
};

std::string to_text(const SuiteResult& result);
std::string to_json(const SuiteResult& result);  // one object

}  // namespace forerun
