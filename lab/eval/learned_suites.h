// The suites of learned predictors: the named data sets that they are trained and judged on.
//
//   ets-t4      the ETS authors' traces of a T4: trained on their training models, judged on their evaluation models
//   ets-2080ti  the same of an RTX 2080 Ti; its evaluation traces are not public
//   h200        measured run records of an H200 (data/h200), split by model family (data/h200/split.json); what is in
//               neither split (RandWire, the what-if models) is reported as out of distribution
//
// h200 can also be divided at random by configuration (learn::divide), so that families are trained on that are judged: DNNPerf's
// question of seen models. `forerun predict` has no row there, as it was fitted to iterations of that part.
//
// Weights lie below data/weights/SUITE, one folder each, those of a random split below data/weights/h200-random; weights of the other
// split are refused. On h200 `forerun predict` itself is judged too. Rows are told nothing
// of the machine that a judged run ran on, but for those that say "host calibrated": they are given the readings of the host
// (host_us) that were taken beside it, where there are any. evaluate_papers puts
// ets-t4 and h200 together with the papers' ablations.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/work_control.h"
#include "lab/accuracy/evaluation.h"
#include "lab/training_data/learning_data.h"

namespace forerun {

struct LearnedSuiteOptions {
  std::string traces;                          // folder of the ETS traces; empty: the data set `ets`
  std::vector<std::string> records;            // record files for h200; empty: the data folder's
  std::vector<std::string> caches;             // data sets written before, in place of all those
  int64_t most_a_group = 0;                    // of ETS traces, of a model; 0: all
  std::vector<std::string> weights;            // folders to judge; empty: all of the data folder's for the suite
  learn::Split unnamed = learn::Split::train;  // part of record families that no split.json names
  learn::Division division;                    // of h200, judged
  bool iterations_alone = false;               // on h200, grow Forerun's trees from iterations alone and judge them too
  bool keep_iterations_alone = false;          // and keep that row
  std::function<void(const DataProblem&)> problem;
  WorkControl control;
};

// The records of the suite h200: those of the options, or the data folder's.
Result<std::vector<std::string>> suite_records(const LearnedSuiteOptions& options);

// The data of one suite.
Result<learn::DataSet> load_suite(const std::string& suite, const LearnedSuiteOptions& options);

// Judges weights on the test split of a suite. Record families that no split.json names count as test families, since nothing
// was trained on them.
Result<SuiteResult> evaluate_learned(const std::string& suite, const LearnedSuiteOptions& options);

struct PapersOptions {
  std::string traces;                // folder of the ETS traces; empty: the data set `ets`
  std::vector<std::string> records;  // record files for h200; empty: the data folder's
  std::function<void(const DataProblem&)> problem;
  WorkControl control;
};

// The papers' tables, ours beside theirs: ets-t4 and h200. One whose data is not here has no rows, and says why.
Result<std::vector<SuiteResult>> evaluate_papers(const PapersOptions& options);

}  // namespace forerun
