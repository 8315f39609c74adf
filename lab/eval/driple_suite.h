// Trains and judges predictors of distributed training's resources: `forerun train driple`, `forerun eval --suite driple`.
//
// Judged are, on workloads of test families: Driple's network (kept weights: data/weights/driple and what begins with
// "driple+"), the simulation by itself, trees that correct it or a few formulas, and the geometric mean of network and
// trees; beside them, how far one window is from the others of its workload, and from the best predictor. None of them
// knows how the links of a run will be shared; what they would do if they did stands apart. Trees are grown anew each time,
// which takes seconds. Studies of networks (ablations, fewer workloads, other settings, parts that are tuned) are kept
// beside the weights and printed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/accuracy/driple_accuracy.h"
#include "lab/dataset/driple/driple_study.h"
#include "lab/training_data/driple_data.h"

namespace forerun {

inline constexpr const char* kBaseResourceSetting = "P1w2-10G";
inline constexpr const char* kDripleWeights = "driple";  // below data/weights

struct DripleTraining {
  std::string setting = kBaseResourceSetting;
  DripleDataOptions data;  // `simulated`: pre-trains on so many
  std::string cache;       // what write_driple_cache wrote, in place of `data`
  learn::ResourceRecipe recipe;
  std::string out;            // folder of weights and studies; empty: they are not kept
  bool all_settings = false;  // trains on measured workloads of all settings, for a network that knows them all
  std::string study;          // ablations, samples, transfer, parts, models; empty: one training
  int64_t folds = 0;          // judged on training families left out in so many parts, and not on test families
};

// The data as files that forerun-train reads where nothing else is (lab/dataset/driple/resource_file.h); gives their source.
Result<std::string> write_driple_cache(const DripleDataOptions& options, const std::string& path);

struct DripleTrainingOutcome {
  std::string folder;
  std::vector<learn::ResourceStudyRow> rows;  // one of a training
};
Result<DripleTrainingOutcome> train_driple(const DripleTraining& request);
std::string to_text(const DripleTrainingOutcome& outcome);
std::string to_json(const DripleTrainingOutcome& outcome);

// The jobs of a study by name.
Result<std::vector<learn::ResourceJob>> driple_study(const DripleTraining& request, const learn::ResourceData& data);

struct DripleEvaluation {
  std::string setting = kBaseResourceSetting;
  DripleDataOptions data;
  std::vector<std::string> weights;  // folders; empty: the data folder's
};
Result<DripleAccuracy> evaluate_driple(const DripleEvaluation& request);

// How far each window of the workloads is from the mean of the workload's others; workloads with one window do not
// count, and the note says how many did.
DripleRow repeatability(const learn::ResourceData& data, const learn::Selection& workloads);

// Transfers from kept rows: of each setting one trained in full and one tuned.
std::vector<DripleTransferRow> transfers_of(const std::vector<learn::ResourceStudyRow>& rows);

}  // namespace forerun
