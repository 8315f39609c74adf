// Habitat's networks: the GPU time of each op by an MLP for its kind, summed (Yu et al., "Habitat: A Runtime-Based
// Computational Performance Predictor for Deep Neural Network Training", USENIX ATC 2021).
//
// One MLP each for convolutions, linear layers, batched products and recurrent layers, on the op's own parameters, with
// the mean relative error as loss; an iteration is the sum of its ops. What differs: Habitat scales a measurement on
// another GPU, by wave scaling or by the ratio of two such answers; here there is none, so an MLP answers with the time
// itself, and a fifth one stands for all ops that Habitat would scale by waves. 8 layers of 128 in place of 1024, to
// keep the weights small. As in Habitat, time in which the GPU waits for the host is not predicted.
#pragma once

#include "lab/dataset/features.h"
#include "lab/dataset/predictor.h"
#include "lab/learn/torch.h"

namespace forerun::learn {

// An MLP for each kind of op.
class HabitatNetImpl : public torch::nn::Module {
 public:
  static constexpr int64_t kKinds = 5;

  HabitatNetImpl(int64_t features, int64_t layers, int64_t hidden);
  // features: [ops, features]; kinds: int64 [ops]. Gives ln(microseconds) [ops].
  torch::Tensor forward(const torch::Tensor& features, const torch::Tensor& kinds);

 private:
  std::vector<torch::nn::Sequential> nets_;
};
TORCH_MODULE(HabitatNet);

class HabitatPredictor : public Predictor {
 public:
  [[nodiscard]] Settings settings() const override;
  Result<TrainingLog> train(const DataSet& data, const TrainOptions& options) override;
  std::vector<Prediction> predict(const DataSet& data, const Selection& examples) override;
  [[nodiscard]] Status save(const std::string& folder) const override;
  Status load(const std::string& folder) override;

 private:
  // Distinct ops of some examples.
  struct Ops {
    torch::Tensor features;
    torch::Tensor kinds;
    std::vector<float> us;              // mean measured time, by op; 0: not measured
    std::vector<int64_t> place_of_row;  // by row of the data set; -1: not among them
  };
  [[nodiscard]] Ops ops_of(const DataSet& data, const Selection& examples) const;
  std::vector<Prediction> predict_ops(const DataSet& data, const Selection& examples, const Ops& ops);
  Status choose(const Settings& settings);
  void make_net();

  int64_t layers_ = 8;
  int64_t hidden_ = 128;
  FeatureEncoder encoder_;
  HabitatNet net_ = nullptr;
  torch::Device device_ = torch::kCPU;
};

}  // namespace forerun::learn
