// How far predictions of distributed training's resources are from what was measured, beside what Driple's paper says and
// beside how far measurements are from each other.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/accuracy/driple_sensitivity.h"

namespace forerun {

struct DripleRow {
  std::string predictor;
  std::string note;
  std::array<double, 12> errors{};  // mean of |predicted - measured| / measured: idle, burst, amount of each resource
  double nrmse = 0;                 // mean over those judged of RMSE / (largest - smallest measured)

  // Means over the figures that were judged: those of others are not a number.
  [[nodiscard]] double resource_error(size_t resource) const;  // gpu, memory, send, receive
  [[nodiscard]] double mean_error() const;
  [[nodiscard]] int64_t judged() const;  // how many were
};

// A kept result of training: an ablation, parts that are tuned, or one number of training workloads.
struct DripleStudyLine {
  std::string study;  // ablations, samples, parts
  std::string name;
  std::string setting = {};
  int64_t training = 0, epochs = 0;
  DripleRow row;
  double validation_error = 0;
  double seconds = 0;
};

// A network trained from the beginning on all workloads of a setting, and one tuned on some of them; both until the error on
// families set aside has not fallen for a while.
struct DripleTransferRow {
  std::string setting;
  int64_t full_workloads = 0, tuned_workloads = 0, test_workloads = 0;
  int64_t full_epochs = 0, tuned_epochs = 0;
  double full_error = 0, tuned_error = 0;  // mean over those judged
  double full_seconds = 0, tuned_seconds = 0;
};

// What Driple's paper says of its network, on other data, workloads and settings.
struct DriplePublished {
  std::array<double, 4> errors{};         // mean percentage errors of gpu, memory, send, receive, as shares of 1
  double time_ratio = 0, data_ratio = 0;  // of training from the beginning over transfer learning
};

// How predictors would do that knew how links come to be shared, which no one does before a run.
struct DripleDivided {
  std::string setting;  // "P1w2-10G-even"
  int64_t training = 0, test = 0;
  std::vector<DripleRow> rows;
};

// Another setting that was measured, judged on its workloads of test families.
struct DripleOtherSetting {
  std::string setting;  // "P2w2-10G"
  int64_t training = 0, test = 0;
  std::vector<DripleRow> rows;  // a note says why a predictor has no errors
};

struct DripleAccuracy {
  std::string setting;
  std::string source;
  int64_t training = 0, test = 0;  // workloads
  std::vector<std::string> test_families;
  std::vector<std::string> unjudged;  // figures that no record tells: "memory idle"
  std::vector<DripleRow> rows;
  std::vector<DripleDivided> divided;
  std::vector<DripleOtherSetting> others;
  std::optional<DripleSensitivity> sensitivity;
  int64_t models = 0, model_folds = 0;
  std::vector<DripleRow> model_rows;  // all workloads, models left out in turn
  std::vector<DripleStudyLine> studies;
  std::vector<DripleTransferRow> transfers;
  std::optional<DriplePublished> published;
  std::vector<std::string> missing;  // what could not be judged, and why
};

std::string to_text(const DripleAccuracy& accuracy);
std::string to_json(const DripleAccuracy& accuracy);

}  // namespace forerun
