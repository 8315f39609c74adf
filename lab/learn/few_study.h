// The study of few traces: a predictor meets a GPU that it has not seen, is tuned on a few traces of its training families, and is
// judged on its test families. What it starts from is meta-learned across other GPUs, trained on them together, or nothing.
//
// All starts are tuned in the same way on the same traces: drawn anew for each draw, families in turn, fewer ones among the more.
// Nothing is chosen by what comes out: each number of epochs is a column, and has a training of its own, whose last weights count.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/dataset/few_rows.h"
#include "lab/dataset/predictor.h"

namespace forerun::learn {

struct FewRequest {
  std::string predictor = "ets";
  std::vector<std::string> starts;  // folders of weights; kScratchStart: none
  std::vector<int64_t> few;         // numbers of traces; empty: 5, 10, 20 and 50
  int64_t draws = 3;
  // Of tuning: batch, rate, seed, device; settings of what starts from nothing. Besides the epochs told here (50) there are
  // columns for 0 (as it starts), 1 and 10 where those are fewer.
  TrainOptions options;
  std::function<void(const std::string&)> progress;
};

// An Error where a start has seen the GPU of `data`, where that holds several, or too few traces.
Result<std::vector<FewRow>> run_few_study(const FewRequest& request, const DataSet& data);

// `count` training examples whose ops are timed, families in turn; those of a smaller count are among them.
Selection few_traces(const DataSet& data, int64_t count, uint64_t seed);

}  // namespace forerun::learn
