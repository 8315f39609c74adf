// Trains and judges predictors of distributed training's resources: `forerun train driple`, `forerun eval --suite driple`.
//
// Judged are, on workloads of test families: Driple's network (kept weights: data/weights/driple-SETTING), the
// simulation by itself, trees that correct it or a few formulas, and the geometric mean of network and trees. Trees are
// grown anew each time, which takes seconds.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/driple_data.h"
#include "learn/driple/resource_predictor.h"
#include "report/driple_accuracy.h"

namespace forerun {

inline constexpr const char* kBaseResourceSetting = "P1w2-10G";

struct DripleTraining {
  std::string setting = kBaseResourceSetting;
  DripleDataOptions data;
  learn::TrainOptions options;
  std::string out;         // folder of weights; empty: they are not kept
  bool transfers = false;  // also train and tune for every other setting, and keep what came of it
};

struct DripleTrainingOutcome {
  std::string folder;
  learn::TrainingLog log;
  int64_t training = 0, validation = 0, test = 0;
  DripleRow row;  // on the test families
  std::vector<DripleTransferRow> transfers;
};
Result<DripleTrainingOutcome> train_driple(const DripleTraining& request);
std::string to_text(const DripleTrainingOutcome& outcome);

struct DripleEvaluation {
  std::string setting = kBaseResourceSetting;
  DripleDataOptions data;
  std::vector<std::string> weights;  // folders; empty: the data folder's of the setting
};
Result<DripleAccuracy> evaluate_driple(const DripleEvaluation& request);

}  // namespace forerun
