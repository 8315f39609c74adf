// How a predictor of resources is trained and judged: from the beginning, or pre-trained on simulated workloads and
// tuned; on all training workloads of a setting or some of them; judged on test families, or on training families or
// models left out in turn. Driple's ablations, its learning curve and its transfer to other settings are lists of these.
// Needs no LibTorch: the predictor comes from whoever asks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lab/dataset/driple/resource_predictor.h"

namespace forerun::learn {

using MakeResourcePredictor = std::function<Result<std::unique_ptr<ResourcePredictor>>()>;

// Epochs and settings of pre-training and tuning were chosen on folds of the base setting's training families.
struct ResourceRecipe {
  TrainOptions options;   // of training from the beginning; settings among them
  bool pretrain = false;  // on simulated workloads of the training families, all settings; then tunes all weights
  int64_t pretrain_epochs = 20;  // without early stopping
  std::string from;              // weights to tune, in place of pre-training
  int64_t tune_epochs = 20;
  double tune_rate = 1e-3;
  double tune_validation = 0;   // share of workloads, by family, to stop tuning by; 0: the last weights count
  std::string keep_pretrained;  // folder for weights as they are before tuning; empty: they are not kept
};

struct TrainedResources {
  std::unique_ptr<ResourcePredictor> predictor;
  TrainingLog log;                 // of the last part: tuning, where there is some
  double pretraining_seconds = 0;  // of what tuning starts from, where it was trained here
  int64_t training = 0, validation = 0;
};
Result<TrainedResources> train_by(const ResourceRecipe& recipe, const ResourceData& data, const Selection& workloads,
                                  const MakeResourcePredictor& make);

// Makes the folder where it is missing.
Status keep_resource_predictor(const ResourcePredictor& predictor, const std::string& folder);

enum class JudgedOn : uint8_t { test_families, family_folds, model_folds };

// One line of a study.
struct ResourceJob {
  std::string study;  // "ablations"
  std::string name;   // "layer=gin"
  std::string setting;
  ResourceRecipe recipe;
  int64_t samples = 0;        // training workloads, spread evenly over the records; 0: all
  bool all_settings = false;  // trains on measured workloads of all settings, of families that may be seen
  JudgedOn on = JudgedOn::test_families;
  int64_t folds = 6;
  int64_t fold = -1;  // only this one, to share the work; -1: all
};

struct ResourceStudyRow {
  std::string study, name, setting;
  int64_t training = 0, test = 0, epochs = 0;
  ResourceMetrics errors{};
  double nrmse = 0;
  double validation_error = 0;
  double seconds = 0, pretraining_seconds = 0;
};
// With `kept`, and judged on test families, the predictor goes there.
Result<ResourceStudyRow> run_job(const ResourceJob& job, const ResourceData& data, const MakeResourcePredictor& make,
                                 std::unique_ptr<ResourcePredictor>* kept = nullptr);

// What is left out in turn: whole families or models, about as many workloads in each of `folds` parts.
std::vector<ResourceFold> resource_folds(const ResourceData& data, const Selection& from, JudgedOn on, int64_t folds);

// `count` workloads, spread evenly.
Selection some_of(const Selection& all, int64_t count);

// Mean over the numbers that are judged of RMSE / (largest - smallest measured).
double normalised_rmse(const ResourceData& data, const Selection& workloads,
                       const std::vector<ResourceMetrics>& predicted);

}  // namespace forerun::learn
