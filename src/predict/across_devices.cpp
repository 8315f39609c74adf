#include "predict/across_devices.h"

#include <algorithm>

#include "base/parallel.h"
#include "cost/analytic/analytic.h"
#include "derive/compile_support.h"
#include "derive/dispatch.h"
#include "derive/precision_support.h"

namespace forerun {
namespace {

// Devices that run the same ops in the same arithmetic.
struct LikeDevices {
  bool cudnn_attention = false;
  Precision precision = Precision::fp32;
  const Device* first = nullptr;
  size_t run = 0;  // of the runs, one for each kind of kernels
  std::optional<hybrid::GraphCosts> costs;
};

struct SharedRun {
  bool cudnn_attention = false;
  const Device* first = nullptr;
  Result<TrainingRun> run = Error{"was not built", "", ""};
};

// The replay in endless memory that devices with the same demands share.
struct SharedReplay {
  size_t run = 0;
  DeviceDemands demands;
  const Device* first = nullptr;
  IterationReplay replay;
};

class AcrossDevices {
 public:
  AcrossDevices(Precision asked, CompileMode compile, std::span<const Device> devices, const CostModels& cost_models)
      : asked_(asked), compile_(compile), cost_models_(cost_models), group_of_(devices.size()) {
    for (size_t i = 0; i < devices.size(); ++i) {
      if (check(devices[i]).ok()) group_of_[i] = group(devices[i]);
    }
    if (!cost_models.residual_model) return;
    const auto measured = cost_models.devices.find(cost_models.residual_model->gpu);
    if (measured) other_ = hybrid::OtherGpu{*measured, cost_models.scale};
  }

  void build(const BuildRun& build, unsigned threads) {
    parallel_for(runs_.size(), threads, [&](size_t i) { runs_[i].run = build(*runs_[i].first); });
    if (!other_) return;
    parallel_for(groups_.size(), threads, [&](size_t i) {
      LikeDevices& like = groups_[i];
      const Result<TrainingRun>& run = runs_[like.run].run;
      if (!run) return;
      like.costs.emplace(run->graph, other_->measured, derive::setup_on(run->setup, *like.first), cost_models_.analytic,
                         *cost_models_.residual_model);
    });
  }

  // Training on several GPUs rewrites the iteration: nothing is shared then.
  void replay(std::span<const Device> devices, const MemoryQuestion& question, unsigned threads) {
    replay_of_.assign(devices.size(), std::nullopt);
    if (question.parallel.any() || question.accumulating) return;
    std::vector<DeviceDemands> demands(devices.size());
    const auto run_on = [&](size_t i) { return group_of_[i] ? groups_[*group_of_[i]].run : runs_.size(); };
    const auto options_on = [&](const TrainingRun& run, const Device& device) {
      return replay_options(run, device, cost_models_.workspaces, question);
    };
    parallel_for(devices.size(), threads, [&](size_t i) {
      if (run_on(i) == runs_.size() || !runs_[run_on(i)].run) return;
      const TrainingRun& run = *runs_[run_on(i)].run;
      demands[i] = device_demands(run.graph, options_on(run, devices[i]));
    });
    for (size_t i = 0; i < devices.size(); ++i) {
      if (run_on(i) == runs_.size() || !runs_[run_on(i)].run) continue;
      size_t like = 0;
      while (like < replays_.size() && !(replays_[like].run == run_on(i) && replays_[like].demands == demands[i]))
        ++like;
      if (like == replays_.size()) {
        replays_.push_back({.run = run_on(i), .demands = std::move(demands[i]), .first = &devices[i]});
      }
      replay_of_[i] = like;
    }
    parallel_for(replays_.size(), threads, [&](size_t i) {
      const TrainingRun& run = *runs_[replays_[i].run].run;
      replays_[i].replay = replay_iterations(run.graph, options_on(run, *replays_[i].first));
    });
  }

  [[nodiscard]] Result<Prediction> predicted(size_t device_number, const Device& device,
                                             const MemoryQuestion& question) const {
    if (!group_of_[device_number]) return check(device).error();
    const LikeDevices& like = groups_[*group_of_[device_number]];
    const Result<TrainingRun>& run = runs_[like.run].run;
    if (!run) return run.error();
    Prediction p = predicted_speed(*run, device, cost_models_, costs_on(device, like, *run));
    const std::optional<size_t> replay = replay_of_[device_number];
    const IterationReplay* endless = replay ? &replays_[*replay].replay : nullptr;
    MemoryQuestion memory = question;
    memory.intervals = memory_intervals_of(cost_models_, run->setup.compile);
    set_memory(predicted_memory(*run, device, cost_models_.workspaces, memory, endless), device, p);
    return p;
  }

 private:
  // Whether the device runs it at all.
  [[nodiscard]] Status check(const Device& device) const {
    Status status = derive::check_precision(asked_, device);
    return status.ok() && compile_ != CompileMode::none ? derive::check_compiler(device) : status;
  }

  size_t group(const Device& device) {
    const bool cudnn = derive::target_of(device).cudnn_attention;
    const Precision precision = derive::precision_on(asked_, device);
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].cudnn_attention == cudnn && groups_[i].precision == precision) return i;
    }
    size_t run = 0;
    while (run < runs_.size() && runs_[run].cudnn_attention != cudnn) ++run;
    if (run == runs_.size()) runs_.push_back({.cudnn_attention = cudnn, .first = &device});
    groups_.push_back({.cudnn_attention = cudnn, .precision = precision, .first = &device, .run = run});
    return groups_.size() - 1;
  }

  [[nodiscard]] std::vector<OpCost> costs_on(const Device& device, const LikeDevices& like,
                                             const TrainingRun& run) const {
    if (!like.costs) return gpu_costs(run, device, cost_models_);
    std::vector<OpCost> costs =
        device.name == other_->measured.name ? like.costs->on_measured() : like.costs->on(device, *other_);
    finish_costs(run, device, cost_models_, costs);
    return costs;
  }

  Precision asked_;
  CompileMode compile_;
  const CostModels& cost_models_;
  std::optional<hybrid::OtherGpu> other_;
  std::vector<SharedRun> runs_;
  std::vector<LikeDevices> groups_;
  std::vector<SharedReplay> replays_;
  std::vector<std::optional<size_t>> group_of_;  // nothing: the device cannot run it
  std::vector<std::optional<size_t>> replay_of_;
};

}  // namespace

Result<std::vector<Result<Prediction>>> predict_across(const BuildRun& build, Precision asked, CompileMode compile,
                                                       std::span<const Device> devices, const CostModels& cost_models,
                                                       const MemoryQuestion& question, unsigned threads, Work& work) {
  AcrossDevices across(asked, compile, devices, cost_models);
  across.build(build, threads);
  MemoryQuestion memory = question;
  memory.moment = false;
  across.replay(devices, memory, threads);
  std::vector<Result<Prediction>> predictions(devices.size(), Error{"was not predicted", "", ""});
  const Status status = parallel_for(devices.size(), threads, work,
                                     [&](size_t i) { predictions[i] = across.predicted(i, devices[i], memory); });
  if (!status.ok()) return status.error();
  return predictions;
}

}  // namespace forerun
