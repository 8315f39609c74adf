// Suites: the named data sets that predictors are trained and judged on.
//
//   ets-t4      the ETS authors' traces of a T4: trained on their training models, judged on their evaluation models
//   ets-2080ti  the same of an RTX 2080 Ti; its evaluation traces are not public
//   h200        measured run records of an H200 (data/h200), split by model family (data/h200/split.json); what is in
//               neither split (RandWire, the what-if models) is reported apart
//   seeds       ets-t4 and h200 with the papers' ablations: the tables of the papers, ours beside theirs
//
// Weights lie below data/weights/SUITE, one folder each. On h200 `forerun predict` itself is judged too.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/accuracy/evaluation.h"
#include "lab/training_data/learning_data.h"

namespace forerun {

struct SuiteOptions {
  std::string traces;                          // folder of the ETS traces; empty: the data set `ets`
  std::vector<std::string> records;            // record files for h200; empty: the data folder's
  std::string cache;                           // a data set written before, in place of all those
  int64_t most_a_group = 0;                    // of ETS traces, of a model; 0: all
  std::vector<std::string> weights;            // folders to judge; empty: all of the data folder's for the suite
  learn::Split unnamed = learn::Split::train;  // part of record families that no split.json names
  std::function<void(const DataProblem&)> problem;
};

std::vector<std::string> suite_names();

// The records of the suite h200: those of the options, or the data folder's.
Result<std::vector<std::string>> suite_records(const SuiteOptions& options);

// The data of one suite (not of `seeds`).
Result<learn::DataSet> load_suite(const std::string& suite, const SuiteOptions& options);

// Judges weights on the test split of a suite; `seeds` gives several results. Record families that no split.json names
// count as test families, since nothing was trained on them.
Result<std::vector<SuiteResult>> evaluate_suite(const std::string& suite, const SuiteOptions& options);

}  // namespace forerun
