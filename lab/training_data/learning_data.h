// Measured iterations as data sets to learn from: run records, and the traces that the authors of ETS published.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/dataset/dataset.h"
#include "lab/papers/ets/ets_trace.h"
#include "predict/cost_models.h"
#include "records/data_scan.h"

namespace forerun {

// A record that was measured as an example; targets are those of an iteration among many (back to back). Gaps are those
// of the profiled iteration, scaled so that GPU times and gaps add up to the measured iteration time.
learn::Example example_of(const RunRecord& record, learn::DataSet& data);
// A trace as an example. Names of ops are the authors' numbers.
learn::Example example_of(const EtsTrace& trace, learn::DataSet& data);

// How the families of run records are split: by split.json beside each file, then by `split`, a further such file (empty:
// none). Families that neither names are `unnamed`.
struct FamilySplit {
  std::string split;
  learn::Split unnamed = learn::Split::train;
};

// The records of these files that were measured and hold their ops. Ids that stand twice count once. With cost models an
// example also tells how slow its host was, where the record holds a calibration of it, and the host's time for each op as
// those models have it.
Result<learn::DataSet> load_record_data(const std::vector<std::string>& paths, const FamilySplit& split,
                                        const std::function<void(const DataProblem&)>& problem,
                                        const CostModels* cost_models = nullptr);

// The authors' traces for a GPU ("T4") in a folder: ets_<GPU>_train.csv.gz to train on, ets_<GPU>_eval.csv.gz to test on.
// `most_a_model` > 0 keeps no more than that many traces of a model. A file that is not there is an Error, but for that
// of the eval traces, which are not public for every GPU.
Result<learn::DataSet> load_ets_data(const std::string& folder, const std::string& gpu, int64_t most_a_model = 0);

}  // namespace forerun
