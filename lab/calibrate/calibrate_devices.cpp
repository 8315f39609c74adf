#include "lab/calibrate/calibrate_devices.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/data_dir.h"
#include "base/datasets.h"
#include "base/json_file.h"
#include "base/provenance.h"
#include "lab/calibrate/calibrate_intervals.h"
#include "lab/calibrate/device_models.h"
#include "lab/calibrate/device_ops.h"
#include "lab/calibrate/judged_runs.h"
#include "predict/carried_models.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;
using hybrid::CarriedOp;
using hybrid::DeviceScale;

Result<std::string> dataset_folder(const std::string& given, const char* name) {
  if (!given.empty()) return given;
  const auto folder = dataset(name);
  if (!folder) return folder.error();
  return folder->string();
}

// Fits to all GPUs but those with one chip (empty: to all). What boards need to sustain their rates, what products sustain, and
// graphics chips are taken as given.
class ScaleSearch {
 public:
  ScaleSearch(const std::vector<DeviceOp>& ops, const CostModels& cost_models)
      : given_(cost_models.scale), rows_(carried_ops(ops, cost_models, given_)) {}

  [[nodiscard]] DeviceScale fit(const std::string& without = "") const {
    const hybrid::Launches launches = hybrid::calibrate_launches(rows_, without);
    DeviceScale scale = given_;
    scale.bandwidth_reach = hybrid::calibrate_reach(rows_, kElementwise, launches, without);
    scale.streaming = hybrid::calibrate_streaming(rows_, scale, launches, without);
    scale.carry = hybrid::calibrate_carry(rows_, scale, launches, without);
    return scale;
  }

  // Each GPU by a fit without its chip.
  void judge(DeviceAccuracy& accuracy) const {
    std::map<std::string, std::vector<CarriedOp>> by_gpu;
    for (const CarriedOp& row : rows_) by_gpu[row.gpu].push_back(row);
    for (const auto& [gpu, rows] : by_gpu) {
      const std::string& chip = rows.front().chip;
      append(hybrid::carried_errors(rows, fit(chip), hybrid::calibrate_launches(rows_, chip)), accuracy.fitted);
    }
  }

 private:
  static void append(const std::vector<hybrid::CarriedError>& rows, std::vector<hybrid::CarriedError>& all) {
    all.insert(all.end(), rows.begin(), rows.end());
  }

  DeviceScale given_;
  std::vector<CarriedOp> rows_;
};

Status add_ops(Result<std::vector<DeviceOp>> more, std::vector<DeviceOp>& ops) {
  if (!more) return more.error();
  ops.insert(ops.end(), std::make_move_iterator(more->begin()), std::make_move_iterator(more->end()));
  return {};
}

// Of eight of ten runs, where every GPU counts the same: with as many ratios, taken evenly from its own.
RatioInterval range_over_gpus(const std::vector<const OtherGpuRun*>& runs) {
  constexpr size_t kOfEach = 60;
  std::map<std::string, std::vector<double>> by_gpu;
  for (const OtherGpuRun* run : runs) by_gpu[run->gpu].push_back(run->ratio());
  std::vector<double> ratios;
  for (auto& [gpu, own] : by_gpu) {
    std::sort(own.begin(), own.end());
    for (size_t i = 0; i < kOfEach; ++i) ratios.push_back(own[i * own.size() / kOfEach]);
  }
  return range_of(std::move(ratios));
}

// Of other GPUs, by runs on all chips but one. Those of the measured GPU's architecture are judged by what the others give: they
// tell nothing. Beyond what anybody measured, the logarithms of the ends are taken half as large again; no run tells.
PredictionIntervals ranges_without(const std::vector<OtherGpuRun>& runs,
                                   const std::map<std::string, std::string>& chips, const PredictionIntervals& given,
                                   const std::string& without) {
  PredictionIntervals ranges = given;
  for (const GpuDistance distance : {GpuDistance::near, GpuDistance::far}) {
    std::vector<const OtherGpuRun*> used;
    for (const OtherGpuRun& run : runs) {
      if (!run.kin && !run.judged_alone && run.distance == distance && chips.at(run.gpu) != without)
        used.push_back(&run);
    }
    ranges.other(distance) = range_over_gpus(used);
  }
  constexpr double kBeyond = 1.5;
  const RatioInterval far = interval_of(ranges, false, GpuDistance::far);
  const auto beyond = [](double end) { return std::round(100 * std::pow(end, kBeyond)) / 100; };
  ranges.other(GpuDistance::beyond) = {beyond(far.low), beyond(far.high)};
  return ranges;
}

Status judge_ranges(const CostModels& cost_models, DeviceAccuracy& accuracy) {
  const auto measured = cost_models.devices.find(cost_models.residual_model->gpu);
  if (!measured) return measured.error();
  std::map<std::string, std::string> chips;
  for (OtherGpuRun& run : accuracy.runs) {
    const auto device = cost_models.devices.find(run.gpu);
    if (!device) return device.error();
    chips[run.gpu] = chip_of(*device);
    run.distance = distance_to(*device, cost_models, run.precision);
    run.kin = device->architecture == measured->architecture;
  }
  std::map<std::string, PredictionIntervals> by_chip;
  for (OtherGpuRun& run : accuracy.runs) {
    const std::string& chip = chips.at(run.gpu);
    auto ranges = by_chip.find(chip);
    if (ranges == by_chip.end()) {
      ranges = by_chip.emplace(chip, ranges_without(accuracy.runs, chips, cost_models.intervals, chip)).first;
    }
    run.range = interval_of(ranges->second, false, run.distance);
  }
  accuracy.ranges = ranges_without(accuracy.runs, chips, cost_models.intervals, "");
  return {};
}

// Habitat's and NeuSight's figures of the same ops and runs, from what the suite other-gpus last kept.
Status add_peers(const fs::path& data, DeviceAccuracy& accuracy) {
  Result<JsonObject> file = JsonObject::read(data / "evaluations" / "other-gpus.json");
  if (!file) return file.error();
  for (JsonObject& row : file->objects("ops")) {
    const std::string gpu = row.text("gpu");
    const std::string kind = row.text("ops");
    for (hybrid::CarriedError& own : accuracy.fitted) {
      if (own.gpu != gpu || own.kind != kind || own.ops != row.integer("number")) continue;
      if (row.has("neusight_mre")) own.neusight = row.number("neusight_mre");
      if (row.has("habitat_mre")) own.habitat = row.number("habitat_mre");
    }
  }
  for (JsonObject& row : file->objects("models")) {
    for (OtherGpuRun& run : accuracy.runs) {
      if (run.source != kNeuSight || run.gpu != row.text("gpu") || run.model != row.text("model") ||
          run.what != row.text("what") || run.batch != row.integer("batch") || run.length != row.integer("length"))
        continue;
      if (row.has("neusight_ms")) run.neusight_ms = row.number("neusight_ms");
      if (!row.has("habitat_ms")) continue;
      JsonObject origins = row.object("habitat_ms");
      const auto names = origins.keys();
      double error = 0;
      for (const std::string& origin : names) error += std::abs(origins.number(origin) / run.measured_ms - 1);
      if (!names.empty()) run.habitat_error = error / static_cast<double>(names.size());
    }
  }
  return file->status();
}

// {"errors": {"NVIDIA L4": 0.124}}: by GPU.
Result<std::map<std::string, double>> published_errors() {
  const Result<fs::path> folder = data_dir();
  if (!folder) return folder.error();
  Result<JsonObject> file = JsonObject::read(*folder / "papers" / "neusight.json");
  if (!file) return file.error();
  JsonObject errors = file->object("errors");
  std::map<std::string, double> by_gpu;
  for (const std::string& gpu : errors.keys()) by_gpu.emplace(gpu, errors.number(gpu));
  if (!file->status().ok()) return file->status().error();
  return by_gpu;
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
  search.judge(accuracy);
  if (const Status status = work.advance(); !status.ok()) return status.error();
  const auto lambda = dataset_folder(request.lambda, "lambda");
  if (!lambda) return lambda.error();
  auto without = [&](const Device& device) -> const CostModels& {
    cost_models->scale = search.fit(chip_of(device));
    return *cost_models;
  };
  add_runs(runs_of_neusight(*neusight, cost_models->devices, without), accuracy);
  add_runs(runs_of_lambda(*lambda, cost_models->devices, without), accuracy);
  struct JudgedSource {
    const std::string& given;
    const char* name;
    OtherGpuRuns (*runs_of)(const std::string&, const DeviceCatalogue&, const KnowledgeFor&);
  };
  for (const auto& [given, name, runs_of] : {JudgedSource{request.pipedream, "pipedream", runs_of_pipedream},
                                             JudgedSource{request.hkbu, "hkbu", runs_of_hkbu},
                                             JudgedSource{request.foundry, "llm_foundry", runs_of_foundry}}) {
    const auto folder = dataset_folder(given, name);
    if (folder) {
      add_runs(runs_of(*folder, cost_models->devices, without), accuracy);
    } else {
      accuracy.problems.push_back(folder.error().message());
    }
  }
  if (const Status judged = judge_ranges(*cost_models, accuracy); !judged.ok()) return judged.error();
  const Result<fs::path> data = data_dir();
  if (!data) return data.error();
  if (const Status added = add_peers(*data, accuracy); !added.ok())
    accuracy.problems.push_back(added.error().message());
  accuracy.date = today_utc();
  const auto models = carried_models_fingerprint();
  if (!models) return models.error();
  accuracy.fingerprint = *models;
  auto published = published_errors();
  if (!published) return published.error();
  accuracy.neusight = std::move(*published);
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
  intervals->other_gpu = outcome.accuracy.ranges.other_gpu;
  if (const Status saved = save_prediction_intervals(*intervals, *folder / kIntervalsFile); !saved.ok())
    return saved.error();
  return outcome;
}

}  // namespace forerun
