// The training loop that the neural predictors share: batches of shuffled samples, Adam, a validation error after each
// epoch, the best weights kept, checkpoints that a later run goes on from.
//
// Deterministic for a seed on one device: samples are shuffled and LibTorch's generator is seeded anew for each epoch by
// (seed, epoch), so a run that resumes from a checkpoint ends with the bits of one that was never interrupted.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "lab/dataset/predictor.h"
#include "lab/learn/torch.h"

namespace forerun::learn {

// What is trained. A sample is whatever the predictor says: a window of ops, a whole graph.
struct TrainingTask {
  torch::nn::Module* module = nullptr;  // on the device that training runs on
  int64_t samples = 0;
  // The loss of a batch of samples, to be minimised: a scalar with gradient. `batch` holds their numbers (int64, on CPU).
  std::function<torch::Tensor(const torch::Tensor& batch)> loss;
  // In place of `loss`, where a step is not taken by its gradient: leaves gradients in the module's parameters, which were zero
  // before, and gives the loss of the batch.
  std::function<torch::Tensor(const torch::Tensor& batch)> gradients = {};
  // MRE on the validation groups with the weights as they are; null: the last weights are the best.
  // Called in evaluation mode without gradients.
  std::function<double()> validation_error;

  int64_t epochs = 100;
  int64_t batch = 128;
  double learning_rate = 1e-3;
  double weight_decay = 0;
  double clip = 0;     // norm that gradients are clipped to; 0: not
  bool decay = false;  // learning rate falls along half a cosine to 0 over the epochs, or the time allowed if less
};

// Trains `task.module` and leaves the best weights in it, rounded to what 16 bits hold, since they are kept so. What
// `options` names goes before the task's own figures.
Result<TrainingLog> run_training(const TrainingTask& task, const TrainOptions& options);

// "auto", "cpu", "cuda" or "cuda:1" as a device; an Error where it is not there.
Result<torch::Device> device_named(const std::string& name);

// A module's parameters and buffers as a file, and back; shapes and names must match. Tensors that 16-bit floats hold
// exactly take no more than those. Where there is no such file, the one with .zst behind its name, compressed by `zstd`, is
// read.
Status save_module(const torch::nn::Module& module, const std::string& path);
Status load_module(torch::nn::Module& module, const std::string& path);

}  // namespace forerun::learn
