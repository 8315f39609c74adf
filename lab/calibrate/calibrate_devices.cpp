#include "lab/calibrate/calibrate_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>

#include "base/data_dir.h"
#include "base/datasets.h"
#include "lab/calibrate/calibrate_intervals.h"
#include "lab/calibrate/device_models.h"
#include "lab/calibrate/device_ops.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;
using hybrid::BoardPower;
using hybrid::CarriedOp;
using hybrid::DeviceScale;

Result<std::string> dataset_folder(const std::string& given, const char* name) {
  if (!given.empty()) return given;
  const auto folder = dataset(name);
  if (!folder) return folder.error();
  return folder->string();
}

// Fits to all GPUs but those with one chip (empty: to all).
class ScaleSearch {
 public:
  ScaleSearch(const std::vector<DeviceOp>& ops, const CostModels& cost_models) : given_(cost_models.scale) {
    const auto attempt = [&](const BoardPower& power) {
      DeviceScale scale = given_;
      scale.power = power;
      tried_.emplace_back(power, carried_ops(ops, cost_models, scale));
    };
    attempt({});
    for (const double enough : {0.6, 0.7, 0.8}) {
      for (const double idle : {0.0, 0.15, 0.3}) attempt({enough, idle});
    }
  }

  // The analytic ratio alone.
  [[nodiscard]] DeviceScale plain() const {
    DeviceScale scale;
    scale.most_watts_per_rate = given_.most_watts_per_rate;
    return scale;
  }

  // What boards need is chosen so that matrix products are too slow on one GPU as rarely as too fast on another, in models
  // and in long rows of calls; convolutions were measured in bursts that are over before clocks fall.
  [[nodiscard]] DeviceScale fit(const std::string& without = "") const {
    DeviceScale best;
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [power, rows] : tried_) {
      DeviceScale scale = given_;
      scale.power = power;
      scale.bandwidth_reach = hybrid::calibrate_reach(rows, kElementwise, without);
      scale.carry = hybrid::calibrate_carry(rows, scale, without);
      double off = 0;
      for (const hybrid::CarriedError& row : hybrid::carried_errors(kept(rows, without), scale)) {
        if (row.kind == kMatrixProduct || row.kind == kModelProduct) off += std::abs(std::log(row.ratio));
      }
      if (off < least) {
        least = off;
        best = scale;
      }
    }
    return best;
  }

  // By GPU, each by a fit without its chip, or by `scale` alone.
  [[nodiscard]] std::vector<hybrid::CarriedError> errors(const std::optional<DeviceScale>& scale = {}) const {
    std::map<std::string, std::string> chips;  // by GPU
    for (const CarriedOp& op : tried_.front().second) chips.emplace(op.gpu, op.chip);
    std::vector<hybrid::CarriedError> all;
    for (const auto& [gpu, chip] : chips) {
      const DeviceScale used = scale ? *scale : fit(chip);
      std::vector<CarriedOp> rows;
      for (const CarriedOp& row : rows_of(used)) {
        if (row.gpu == gpu) rows.push_back(row);
      }
      const auto found = hybrid::carried_errors(rows, used);
      all.insert(all.end(), found.begin(), found.end());
    }
    return all;
  }

 private:
  [[nodiscard]] static std::vector<CarriedOp> kept(const std::vector<CarriedOp>& rows, const std::string& without) {
    std::vector<CarriedOp> list;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(list),
                 [&](const CarriedOp& row) { return row.chip != without; });
    return list;
  }

  [[nodiscard]] const std::vector<CarriedOp>& rows_of(const DeviceScale& scale) const {
    const auto found = std::find_if(tried_.begin(), tried_.end(), [&](const auto& entry) {
      return entry.first.enough == scale.power.enough && entry.first.idle == scale.power.idle;
    });
    CHECK(found != tried_.end(), "the scale is one of those tried");
    return found->second;
  }

  DeviceScale given_;  // what is not fitted: the share of products, graphics chips, boards
  std::vector<std::pair<BoardPower, std::vector<CarriedOp>>> tried_;
};

Status add_ops(Result<std::vector<DeviceOp>> more, std::vector<DeviceOp>& ops) {
  if (!more) return more.error();
  ops.insert(ops.end(), std::make_move_iterator(more->begin()), std::make_move_iterator(more->end()));
  return {};
}

void add_runs(OtherGpuRuns found, DeviceAccuracy& accuracy) {
  accuracy.runs.insert(accuracy.runs.end(), found.runs.begin(), found.runs.end());
  accuracy.problems.insert(accuracy.problems.end(), found.problems.begin(), found.problems.end());
}

}  // namespace

Result<DeviceAccuracy> evaluate_devices(const DeviceRequest& request, const WorkControl& control) {
  Work work(control, "steps of the fit", 4);
  Result<CostModels> cost_models = load_cost_models();
  if (!cost_models) return cost_models.error();
  if (!cost_models->residual_model) {
    return Error{"there are no trees to carry over", "", "train them with `forerun train hybrid`"};
  }
  const auto neusight = dataset_folder(request.neusight, "neusight");
  const auto ets = dataset_folder(request.ets, "ets");
  if (!neusight || !ets) return neusight ? ets.error() : neusight.error();
  DeviceAccuracy accuracy;
  auto ops = load_neusight_ops(request.ops.empty() ? *neusight : request.ops, cost_models->devices);
  if (!ops) return ops.error();
  if (const Status status = work.advance(); !status.ok()) return status.error();
  if (const Status added = add_ops(load_neusight_model_ops(*neusight, cost_models->devices), *ops); !added.ok()) {
    accuracy.problems.push_back(added.error().message());
  }
  if (const Status added = add_ops(load_ets_convolutions(*ets, cost_models->devices), *ops); !added.ok()) {
    accuracy.problems.push_back(added.error().message());
  }
  if (const Status status = work.advance(); !status.ok()) return status.error();
  const ScaleSearch search(*ops, *cost_models);
  accuracy.scale = search.fit();
  accuracy.plain = search.errors(search.plain());
  accuracy.fitted = search.errors();
  if (const Status status = work.advance(); !status.ok()) return status.error();
  const auto lambda = dataset_folder(request.lambda, "lambda");
  if (!lambda) return lambda.error();
  auto without = [&](const Device& device) -> const CostModels& {
    cost_models->scale = search.fit(chip_of(device));
    return *cost_models;
  };
  add_runs(runs_of_neusight(*neusight, cost_models->devices, without), accuracy);
  add_runs(runs_of_lambda(*lambda, cost_models->devices, without), accuracy);
  std::vector<double> ratios;
  for (const OtherGpuRun& run : accuracy.runs) ratios.push_back(run.measured_ms / run.predicted_ms);
  accuracy.range = range_of(std::move(ratios));
  return accuracy;
}

Result<DeviceOutcome> calibrate_devices(const DeviceRequest& request, const std::string& out,
                                        const WorkControl& control) {
  const Result<fs::path> folder = data_dir();
  if (!folder) return folder.error();
  auto accuracy = evaluate_devices(request, control);
  if (!accuracy) return accuracy.error();
  DeviceOutcome outcome{.file = out.empty() ? (*folder / hybrid::kDeviceScaleFile).string() : out,
                        .accuracy = std::move(*accuracy)};
  if (const Status saved = hybrid::save_device_scale(outcome.accuracy.scale, outcome.file); !saved.ok()) {
    return saved.error();
  }
  if (!out.empty() || outcome.accuracy.runs.empty()) return outcome;
  auto intervals = load_prediction_intervals(*folder / kIntervalsFile);
  if (!intervals) return intervals.error();
  intervals->other_gpu = outcome.accuracy.range;
  if (const Status saved = save_prediction_intervals(*intervals, *folder / kIntervalsFile); !saved.ok())
    return saved.error();
  return outcome;
}

}  // namespace forerun
