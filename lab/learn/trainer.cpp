#include "lab/learn/trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <random>
#include <sstream>

#include "base/check.h"
#include "base/output_file.h"
#include "lab/dataset/weights_files.h"

namespace forerun::learn {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCompressed = ".zst";

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// The weights of a module as they are, apart from it.
std::vector<torch::Tensor> copy_of(const torch::nn::Module& module) {
  torch::NoGradGuard guard;
  std::vector<torch::Tensor> copy;
  for (const torch::Tensor& tensor : module.parameters()) copy.push_back(tensor.detach().clone());
  for (const torch::Tensor& tensor : module.buffers()) copy.push_back(tensor.detach().clone());
  return copy;
}

void restore(torch::nn::Module& module, const std::vector<torch::Tensor>& copy) {
  torch::NoGradGuard guard;
  size_t at = 0;
  for (torch::Tensor& tensor : module.parameters()) tensor.copy_(copy[at++]);
  for (torch::Tensor& tensor : module.buffers()) tensor.copy_(copy[at++]);
}

// The tensor as 16-bit floats where they hold all its values, else as it is.
torch::Tensor shortest(const torch::Tensor& tensor) {
  if (tensor.scalar_type() != torch::kFloat32) return tensor;
  const torch::Tensor half = tensor.to(torch::kFloat16);
  return torch::equal(half.to(torch::kFloat32), tensor) ? half : tensor;
}

void round_weights(torch::nn::Module& module) {
  torch::NoGradGuard guard;
  for (torch::Tensor& tensor : module.parameters()) {
    const torch::Tensor rounded = tensor.to(torch::kFloat16).to(torch::kFloat32);
    if (torch::isfinite(rounded).all().item<bool>()) tensor.copy_(rounded);
  }
}

// A name of a parameter as an archive takes it: without dots.
std::string archive_key(const std::string& name) {
  std::string key = name;
  for (size_t at = 0; (at = key.find('.', at)) != std::string::npos; at += 2) key.replace(at, 1, "__");
  return key;
}

// An archive has no part of the file's name inside when it is saved to a stream, so the same weights give the same bytes.
Status save_archive(torch::serialize::OutputArchive& archive, const std::string& path) {
  std::ostringstream bytes;
  archive.save_to(bytes);
  return write_whole_file(path, bytes.str());
}

// A random order of the samples, the same for one seed and epoch on every machine.
torch::Tensor shuffled(int64_t samples, uint64_t seed, int64_t epoch) {
  torch::Tensor order = torch::arange(samples, torch::kInt64);
  auto* numbers = order.data_ptr<int64_t>();
  std::mt19937_64 random(seed * 1000003 + static_cast<uint64_t>(epoch));
  for (int64_t i = samples - 1; i > 0; --i) {
    std::swap(numbers[i], numbers[random() % static_cast<uint64_t>(i + 1)]);
  }
  return order;
}

// One run of the loop; what it does is in the order of its functions.
class Loop {
 public:
  Loop(const TrainingTask& task, const TrainOptions& options)
      : task_(task),
        options_(options),
        epochs_(options.epochs.value_or(task.epochs)),
        batch_(options.batch.value_or(task.batch)),
        learning_rate_(options.learning_rate.value_or(task.learning_rate)),
        optimizer_(task.module->parameters(),
                   torch::optim::AdamOptions(learning_rate_).weight_decay(task.weight_decay)) {}

  Result<TrainingLog> run() {
    if (task_.samples == 0) return Error{"there is nothing to train on", "", "check the split of the data set"};
    if (const Status status = resume(); !status.ok()) return status.error();
    started_ = now() - log_.seconds;
    for (int64_t epoch = static_cast<int64_t>(log_.epochs.size()) + 1; epoch <= epochs_ && !finished(epoch); ++epoch) {
      const double loss = train_epoch(epoch);
      if (!std::isfinite(loss)) {
        return Error{fmt::format("the loss is no longer a number in epoch {}", epoch), "", "use a lower learning rate"};
      }
      close_epoch(epoch, loss);
      if (const Status status = write_checkpoint(); !status.ok()) return status.error();
      if (options_.progress) options_.progress(log_.epochs.back());
    }
    if (!best_.empty()) restore(*task_.module, best_);
    round_weights(*task_.module);
    if (const Status status = write_curve(); !status.ok()) return status.error();
    return log_;
  }

 private:
  bool finished(int64_t epoch) const {
    if (options_.patience > 0 && epoch - 1 - log_.best_epoch >= options_.patience) return true;
    return options_.seconds > 0 && log_.seconds >= options_.seconds;
  }

  void set_learning_rate(int64_t epoch) {
    if (!task_.decay) return;
    double share = static_cast<double>(epoch - 1) / static_cast<double>(epochs_);
    if (options_.seconds > 0) share = std::clamp(log_.seconds / options_.seconds, share, 1.0);
    const double rate = learning_rate_ * 0.5 * (1 + std::cos(std::numbers::pi * share));
    for (auto& group : optimizer_.param_groups()) static_cast<torch::optim::AdamOptions&>(group.options()).lr(rate);
  }

  double train_epoch(int64_t epoch) {
    torch::manual_seed(options_.seed * 7919 + static_cast<uint64_t>(epoch));
    set_learning_rate(epoch);
    task_.module->train();
    const torch::Tensor order = shuffled(task_.samples, options_.seed, epoch);
    torch::Tensor sum;  // stays on the device: reading it each step would wait for the GPU
    for (int64_t first = 0; first < task_.samples; first += batch_) {
      const int64_t count = std::min(batch_, task_.samples - first);
      optimizer_.zero_grad();
      const torch::Tensor loss = leave_gradients(order.narrow(0, first, count));
      if (task_.clip > 0) torch::nn::utils::clip_grad_norm_(task_.module->parameters(), task_.clip);
      optimizer_.step();
      const torch::Tensor share = loss.detach() * static_cast<double>(count);
      sum = sum.defined() ? sum + share : share;
    }
    return sum.item<double>() / static_cast<double>(task_.samples);
  }

  torch::Tensor leave_gradients(const torch::Tensor& batch) {
    if (task_.gradients) return task_.gradients(batch);
    torch::Tensor loss = task_.loss(batch);
    loss.backward();
    return loss;
  }

  void close_epoch(int64_t epoch, double loss) {
    EpochReport report{.epoch = epoch, .epochs = epochs_, .training_loss = loss};
    if (task_.validation_error) {
      torch::NoGradGuard guard;
      task_.module->eval();
      report.validation_error = task_.validation_error();
    }
    report.best =
        !task_.validation_error || log_.best_epoch == 0 || report.validation_error < log_.best_validation_error;
    if (report.best) {
      log_.best_epoch = epoch;
      log_.best_validation_error = report.validation_error;
      best_ = copy_of(*task_.module);
    }
    report.seconds = log_.seconds = now() - started_;
    log_.epochs.push_back(report);
  }

  [[nodiscard]] std::string checkpoint_file() const {
    return (fs::path(options_.checkpoint) / "checkpoint.pt").string();
  }

  // Weights, the best ones, the optimizer's state and the epochs so far.
  Status write_checkpoint() {
    if (options_.checkpoint.empty()) return {};
    try {
      fs::create_directories(options_.checkpoint);
      torch::serialize::OutputArchive archive;
      archive.write("weights", at::IValue(copy_of(*task_.module)));
      archive.write("best", at::IValue(best_));
      torch::serialize::OutputArchive optimizer;
      optimizer_.save(optimizer);
      archive.write("optimizer", optimizer);
      std::vector<double> epochs;
      for (const EpochReport& report : log_.epochs) {
        epochs.insert(epochs.end(),
                      {report.training_loss, report.validation_error, report.best ? 1.0 : 0.0, report.seconds});
      }
      archive.write("epochs", torch::tensor(epochs, torch::kFloat64));
      return save_archive(archive, checkpoint_file());
    } catch (const std::exception& error) {
      return Error{std::string("cannot be written: ") + error.what(), checkpoint_file(), "check the folder"};
    }
  }

  Status resume() {
    if (!options_.resume || options_.checkpoint.empty() || !fs::exists(checkpoint_file())) return {};
    try {
      torch::serialize::InputArchive archive;
      archive.load_from(checkpoint_file());
      at::IValue weights;
      at::IValue best;
      archive.read("weights", weights);
      archive.read("best", best);
      restore(*task_.module, weights.toTensorVector());
      for (const torch::Tensor& tensor : best.toTensorVector()) best_.push_back(tensor.to(device()));
      torch::serialize::InputArchive optimizer;
      archive.read("optimizer", optimizer);
      optimizer_.load(optimizer);
      torch::Tensor epochs;
      archive.read("epochs", epochs);
      read_epochs(epochs.to(torch::kCPU).contiguous());
    } catch (const std::exception& error) {
      return Error{"not a checkpoint of this training", checkpoint_file(), "remove it, or train without resuming"};
    }
    return {};
  }

  void read_epochs(const torch::Tensor& epochs) {
    const auto* value = epochs.data_ptr<double>();
    for (int64_t i = 0; i < epochs.numel() / 4; ++i, value += 4) {
      log_.epochs.push_back({.epoch = i + 1,
                             .epochs = epochs_,
                             .training_loss = value[0],
                             .validation_error = value[1],
                             .best = value[2] != 0,
                             .seconds = value[3]});
      if (log_.epochs.back().best) {
        log_.best_epoch = i + 1;
        log_.best_validation_error = value[1];
      }
      log_.seconds = value[3];
    }
  }

  Status write_curve() const {
    if (options_.curve.empty()) return {};
    std::string rows = "epoch,training_loss,validation_error,best,seconds\n";
    for (const EpochReport& report : log_.epochs) {
      rows += fmt::format("{},{:.6g},{:.6g},{},{:.2f}\n", report.epoch, report.training_loss, report.validation_error,
                          report.best ? 1 : 0, report.seconds);
    }
    return write_whole_file(options_.curve, rows);
  }

  [[nodiscard]] torch::Device device() const { return task_.module->parameters().front().device(); }

  const TrainingTask& task_;
  const TrainOptions& options_;
  int64_t epochs_;
  int64_t batch_;
  double learning_rate_;
  torch::optim::Adam optimizer_;
  TrainingLog log_;
  std::vector<torch::Tensor> best_;
  double started_ = 0;
};

}  // namespace

Result<TrainingLog> run_training(const TrainingTask& task, const TrainOptions& options) {
  CHECK(task.module != nullptr && (task.loss || task.gradients), "a task has a module and a loss");
  auto log = Loop(task, options).run();
  if (log) log->device = task.module->parameters().front().device().str();
  return log;
}

Result<torch::Device> device_named(const std::string& name) {
  const bool cuda = torch::cuda::is_available();
  if (name == "auto") return torch::Device(cuda ? torch::kCUDA : torch::kCPU);
  if (name == "cpu") return torch::Device(torch::kCPU);
  if (name == "cuda" || name.rfind("cuda:", 0) == 0) {
    if (!cuda) return Error{"there is no CUDA device here", "", "train with --device cpu"};
    try {
      return torch::Device(name);
    } catch (const std::exception&) {
      return Error{"'" + name + "' is no device", "", "use cpu, cuda or auto"};
    }
  }
  return Error{"'" + name + "' is no device", "", "use cpu, cuda or auto"};
}

Status save_module(const torch::nn::Module& module, const std::string& path) {
  try {
    torch::serialize::OutputArchive archive;
    for (const auto& item : module.named_parameters()) {
      archive.write(archive_key(item.key()), shortest(item.value().detach().to(torch::kCPU)));
    }
    for (const auto& item : module.named_buffers()) {
      archive.write(archive_key(item.key()), shortest(item.value().detach().to(torch::kCPU)), /*is_buffer=*/true);
    }
    return save_archive(archive, path);
  } catch (const std::exception& error) {
    return Error{"cannot be written", path, "check the folder"};
  }
}

Status load_module(torch::nn::Module& module, const std::string& path) {
  const Error misfit{"these weights do not fit the predictor", path, "train it again"};
  try {
    torch::NoGradGuard guard;
    torch::serialize::InputArchive archive;
    if (fs::exists(path)) {
      archive.load_from(path, torch::kCPU);
    } else {
      const auto bytes = bytes_of(path + kCompressed);
      if (!bytes) return bytes.error();
      std::istringstream stream(*bytes);
      archive.load_from(stream, torch::kCPU);
    }
    const auto read = [&](const std::string& key, torch::Tensor into, bool buffer) {
      torch::Tensor stored;
      if (!archive.try_read(archive_key(key), stored, buffer) || stored.sizes() != into.sizes()) return false;
      into.copy_(stored);
      return true;
    };
    for (const auto& item : module.named_parameters()) {
      if (!read(item.key(), item.value(), false)) return misfit;
    }
    for (const auto& item : module.named_buffers()) {
      if (!read(item.key(), item.value(), true)) return misfit;
    }
  } catch (const std::exception&) {
    return misfit;
  }
  return {};
}

}  // namespace forerun::learn
