// ETS: iteration time from sliding windows over the execution trace (Yang et al., "ETS: Deep Learning Training Iteration
// Time Prediction based on Execution Trace Sliding Window", HPDC 2024).
//
// The ops of an iteration in the order they run are cut into windows of 12, 3 apart, the last padded. A 4-layer
// bidirectional LSTM as wide as the features, then a linear layer, gives GPU time and following gap of each op. Overlaps
// are averaged, then all is summed. Training: L1 on both, Adam 1e-3, batches of 128 windows, 100 epochs.
//
// Features on the authors' traces are theirs: op type, phase and type one-hot; batch, input size, FLOPs, bytes and 30
// parameters as logarithms, standard-scaled. On run records the same idea: names of dispatched ops in place of their op
// types, the tensor sizes that the paper lists, and the optimizer and precision. Ops without kernels are left out.
//
// What differs: weights of the epoch with the least error on validation groups are kept, where the authors' program keeps
// those of the best epoch on its evaluation set; the learning rate falls along half a cosine and gradients are clipped to
// norm 1; times are in milliseconds; negative predictions count as 0; features far outside of what was seen are clipped.
// Settings carry the paper's ablations: cell, layers, direction, width, stride, loss, and target (log: ln(1 + us) in place
// of milliseconds). The others are ours, and off unless set. `sums`: so many times the error of a window's sum is added to
// the loss; an L1 loss op by op asks for medians, and those of skewed times add up to too little. `balance`: a window counts
// by the time of its iteration to minus this power, so that short iterations are not drowned by long ones. `nets`: so many
// networks, each from its own seed, whose predictions are averaged (data/weights/README.md says how those that are kept were
// trained). `target` ratio: the network gives logarithms of the ratios of time and gap to what they would take by rule of
// thumb (op_scales.h), and is told that too, four features more; the loss stays that of times, those of an iteration over
// their mean where `balance` is 1, and `logs` times the error of the logarithms is added, so that short ops count. Then
// layers larger than any in training are predicted in proportion. `target` lanes: the same with what an op asks of the GPU and
// of the host, of which two lanes make the iteration (lane_times.h). `dropout`: this share of what passes between the cell's
// layers is left out in training. `features` shared: ops of run records and of the authors' traces are told alike (shared_form.h), so
// that one network learns from GPUs of both; with the target ratio times are then relative to the roofline of each GPU.
//
// Meta-learning (TrainOptions::meta): a GPU is a task, and what is learned is a start from which a few traces of a further one go
// far (lab/learn/meta_learner.h).
#pragma once

#include <string>

#include "lab/dataset/features.h"
#include "lab/dataset/known_devices.h"
#include "lab/dataset/predictor.h"
#include "lab/learn/ets/ets_net.h"
#include "lab/learn/trainer.h"

namespace forerun::learn {

struct EtsOptions {
  EtsNetOptions net;
  int64_t stride = 3;
  int64_t hidden = 0;            // 0: as wide as the features
  std::string loss = "l1";       // l1, smooth_l1, huber, mse
  std::string target = "ms";     // ms; log: ln(1 + us); ratio: ln of the ratio to op_scales.h; lanes: to lane_times.h
  std::string features = "own";  // those of the data; shared: what records and traces both tell
  double sums = 0;
  double logs = 0;  // with ratio and lanes
  double balance = 0;
  int64_t nets = 1;

  [[nodiscard]] Settings to_settings() const;
  // What is not set stays as in `defaults`.
  static Result<EtsOptions> from_settings(const Settings& settings, const EtsOptions& defaults);
};

// The op-based baseline of the paper: each op by itself through layers of 256, 128 and 64.
EtsOptions op_mlp_options();

class EtsPredictor : public Predictor {
 public:
  explicit EtsPredictor(const EtsOptions& defaults = {}) : defaults_(defaults), options_(defaults) {}

  [[nodiscard]] Settings settings() const override { return options_.to_settings(); }
  Result<TrainingLog> train(const DataSet& data, const TrainOptions& options) override;
  std::vector<Prediction> predict(const DataSet& data, const Selection& examples) override;
  [[nodiscard]] Status save(const std::string& folder) const override;
  Status load(const std::string& folder) override;

 private:
  // Windows of some examples as tensors: places of a table of features, of which the last row is padding.
  struct Windows {
    torch::Tensor features;                    // [ops + 1, features]
    torch::Tensor targets;                     // [ops + 1, 2], where asked for
    torch::Tensor scales, offsets;             // [ops + 1, 2] in milliseconds, with ratio and lanes
    torch::Tensor places;                      // int64 [windows, width]
    torch::Tensor adjacency;                   // [windows, width, width], for gcn
    torch::Tensor weights;                     // [windows], where they are balanced
    torch::Tensor distinct, alike;             // int64: windows that differ; [windows], which of those each is like
    std::vector<std::vector<int64_t>> starts;  // by example
    std::vector<std::vector<uint32_t>> ops;    // by example: positions of the ops that have kernels
  };
  Result<TrainingLog> train_in_form(const DataSet& data, const TrainOptions& options, std::vector<EtsNet> begun);
  std::vector<Prediction> predict_in_form(const DataSet& data, const Selection& examples);
  // The gradients of meta-learning as a task of training, in place of a loss; batches of it are episodes.
  Status learn_across(const DataSet& data, const Selection& examples, const Windows& windows, EtsNet& net,
                      TrainOptions& options, TrainingTask& task) const;
  [[nodiscard]] Windows windows_of(const DataSet& data, const Selection& examples, bool with_targets) const;
  // Windows that hold the same ops are computed once.
  void add_distinct(Windows& windows, std::vector<int64_t> places) const;
  void add_adjacency(const DataSet& data, const Selection& examples, Windows& windows) const;
  // Features of the ops at these places of an example, their scales and what is added, at the end of all three.
  void add_features(const DataSet& data, const Example& example, std::span<const uint32_t> places,
                    std::vector<float>& features, std::vector<float>& scales, std::vector<float>& offsets) const;
  void add_weights(const DataSet& data, const Selection& examples, Windows& windows) const;
  torch::Tensor loss_of(EtsNet& net, const Windows& windows, const torch::Tensor& batch) const;
  // In the unit of the targets; with ratio and lanes in milliseconds.
  torch::Tensor forward(EtsNet& net, const Windows& windows, const torch::Tensor& batch) const;
  // Of one network; of the mean of all.
  std::vector<Prediction> predict_windows(EtsNet& net, const DataSet& data, const Selection& examples,
                                          const Windows& windows) const;
  std::vector<Prediction> predict_windows(const DataSet& data, const Selection& examples, const Windows& windows);
  [[nodiscard]] bool shared() const { return options_.features == "shared"; }
  [[nodiscard]] bool ratio() const { return options_.target == "ratio"; }
  [[nodiscard]] bool lanes() const { return options_.target == "lanes"; }
  [[nodiscard]] bool relative() const { return ratio() || lanes(); }  // to what the network is told
  [[nodiscard]] int64_t columns() const;                              // features of an op
  void forget();  // all networks; the next are as wide as the encoder says

  EtsOptions defaults_;
  EtsOptions options_;
  KnownDevices devices_;
  FeatureEncoder encoder_;
  std::vector<EtsNet> nets_;
  torch::Device device_ = torch::kCPU;
};

}  // namespace forerun::learn
