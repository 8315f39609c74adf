#include "lab/eval/calibration_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/data_dir.h"
#include "base/statistics.h"
#include "predict/machine_calibration.h"
#include "predict/predict.h"
#include "records/data_split.h"

namespace forerun {
namespace {

struct JudgedRun {
  TrainingRun run;
  std::string part;  // of the split
  double iteration_ms = 0;
  double busy_us = 0;
};

// A predicted figure beside the measured one.
struct Pair {
  std::string family;
  std::string part;
  std::string host;
  double predicted = 0;
  double measured = 0;
  double low = 0, high = 0;  // of the answer's range; 0: it has none
  bool gpu_bound = false;    // as measured
};

Result<std::vector<JudgedRun>> judged_runs(const CalibrationSuiteOptions& options) {
  const Result<DataSplit> split = DataSplit::beside(options.records);
  if (!split) return split.error();
  std::vector<JudgedRun> runs;
  const auto take = [&](const RunRecord& record, const DataPlace& /*place*/) {
    if (!record.has_graph || !record.measured || record.measured->status != RunStatus::ok) return;
    const Measurement& m = *record.measured;
    const std::string part = split->part_of(record.run);
    if ((part != "test" && part != "ood" && part != "train") || m.gpu_busy_us <= 0 || m.pipelined_median_ms <= 0)
      return;
    runs.push_back({record.run, part, m.pipelined_median_ms, m.gpu_busy_us});
  };
  const Status status = scan_files(options.records, Fields::inputs_and_measurements,
                                   {.run = take, .sample = {}, .problem = options.problem});
  if (!status.ok()) return status.error();
  if (runs.empty()) return Error{"there are no measured iterations to judge by", "", "give records with --data"};
  return runs;
}

Result<std::vector<Pair>> busy_times(const std::vector<JudgedRun>& runs, const CostModels& cost_models, Work& work) {
  std::vector<Pair> pairs;
  for (const JudgedRun& judged : runs) {
    if (const Status status = work.check(); !status.ok()) return status.error();
    if (judged.part == "train") continue;
    const Result<Device> device = cost_models.devices.find(judged.run.environment.gpu);
    if (!device) return device.error();
    const Result<TrainingRun> run = for_device(judged.run, *device);
    if (!run) return run.error();
    double us = 0;
    for (const OpCost& cost : gpu_costs(*run, *device, cost_models)) us += static_cast<double>(cost.gpu.value) / 1e3;
    pairs.push_back({.family = judged.run.family,
                     .part = judged.part,
                     .predicted = us,
                     .measured = judged.busy_us,
                     .gpu_bound = judged.busy_us >= 0.9e3 * judged.iteration_ms});
  }
  return pairs;
}

CalibrationRow row_of(std::string what, const std::vector<Pair>& pairs) {
  CalibrationRow row;
  row.what = std::move(what);
  row.within = -1;
  std::vector<double> errors;
  std::map<std::string, std::vector<double>> families;
  int64_t ranges = 0;
  int64_t within = 0;
  for (const Pair& pair : pairs) {
    if (pair.part != "test") continue;
    const double error = std::abs(pair.predicted / pair.measured - 1);
    errors.push_back(error);
    families[pair.family].push_back(error);
    ranges += pair.high > 0 ? 1 : 0;
    within += pair.high > 0 && pair.measured >= pair.low && pair.measured <= pair.high ? 1 : 0;
  }
  row.runs = static_cast<int64_t>(errors.size());
  if (errors.empty()) return row;
  row.mean = mean(errors);
  row.median = median(errors);
  if (ranges > 0) row.within = static_cast<double>(within) / static_cast<double>(ranges);
  for (const auto& [family, list] : families) row.families[family] = mean(list);
  return row;
}

// The range of measured over predicted in one part.
RatioInterval range_in(const std::string& part, const std::vector<Pair>& pairs) {
  std::vector<double> ratios;
  for (const Pair& pair : pairs) {
    if (pair.part == part) ratios.push_back(pair.measured / pair.predicted);
  }
  return range_of(std::move(ratios));
}

// The widest that any machine's runs of training families need: what the next machine is like nobody knows.
RatioInterval widest_range(const std::vector<Pair>& pairs) {
  constexpr size_t kEnough = 8;
  std::map<std::string, std::vector<double>> machines;
  for (const Pair& pair : pairs) {
    if (pair.part == "train") machines[pair.host].push_back(pair.measured / pair.predicted);
  }
  RatioInterval widest;
  for (const auto& [host, ratios] : machines) {
    if (ratios.size() < kEnough) continue;
    const RatioInterval range = range_of(ratios);
    widest = {std::min(widest.low, range.low), std::max(widest.high, range.high)};
  }
  return widest;
}

void set_ranges(const RatioInterval& range, std::vector<Pair>& pairs) {
  for (Pair& pair : pairs) {
    pair.low = range.low * pair.predicted;
    pair.high = range.high * pair.predicted;
  }
}

// -- the host

enum class HostReadings : uint8_t { none, of_machine, beside_run };

// The median readings of each machine, of runs of training families.
std::map<std::string, HostCalibration> machine_readings(const std::vector<JudgedRun>& runs) {
  std::map<std::string, std::vector<HostCalibration>> rounds;
  for (const JudgedRun& judged : runs) {
    const Environment& environment = judged.run.environment;
    if (judged.part == "train" && !environment.calibration.empty()) {
      rounds[environment.host].push_back(environment.calibration);
    }
  }
  std::map<std::string, HostCalibration> medians;
  for (const auto& [host, list] : rounds) medians[host] = median_of(list);
  return medians;
}

Result<std::vector<Pair>> host_times(const std::vector<JudgedRun>& runs, const CostModels& cost_models,
                                     HostReadings readings, Work& work) {
  const auto machines = machine_readings(runs);
  std::vector<Pair> pairs;
  for (const JudgedRun& judged : runs) {
    if (const Status status = work.check(); !status.ok()) return status.error();
    const auto machine = machines.find(judged.run.environment.host);
    // The same iterations are judged in every row, those of machines that were read; ranges of the default know the others too.
    if (judged.part == "ood") continue;
    const bool read = !judged.run.environment.calibration.empty() && machine != machines.end();
    if (!read && (readings != HostReadings::none || judged.part != "train")) continue;
    if (judged.busy_us >= 0.75e3 * judged.iteration_ms) continue;
    const Result<Device> device = cost_models.devices.find(judged.run.environment.gpu);
    if (!device) return device.error();
    Result<TrainingRun> run = for_device(judged.run, *device);
    if (!run) return run.error();
    if (readings == HostReadings::none) run->environment.calibration = {};
    if (readings == HostReadings::of_machine) run->environment.calibration = machine->second;
    const IterationTiming times = predicted_times(*run, *device, cost_models);
    pairs.push_back({.family = judged.run.family,
                     .part = judged.part,
                     .host = judged.run.environment.host,
                     .predicted = milliseconds(times.iteration),
                     .measured = judged.iteration_ms});
  }
  return pairs;
}

Status judge_host(const std::vector<JudgedRun>& runs, CalibrationAccuracy& accuracy, CalibratedIntervals& ranges,
                  Work& work) {
  const Result<CostModels> whole = load_cost_models();
  if (!whole) return whole.error();
  constexpr std::pair<HostReadings, const char*> kRows[] = {{HostReadings::none, "default host"},
                                                            {HostReadings::of_machine, "readings of the machine"},
                                                            {HostReadings::beside_run, "readings beside each run"}};
  for (const auto& [readings, what] : kRows) {
    auto pairs = host_times(runs, *whole, readings, work);
    if (!pairs) return pairs.error();
    const RatioInterval range = readings == HostReadings::none ? widest_range(*pairs) : range_in("train", *pairs);
    set_ranges(range, *pairs);
    accuracy.host.push_back(row_of(what, *pairs));
    if (readings == HostReadings::none) ranges.default_host = range;
    if (readings == HostReadings::of_machine) ranges.calibrated_host = range;
  }
  return {};
}

Status judge_gpu(const std::vector<JudgedRun>& runs, const std::vector<std::string>& machines,
                 CalibrationAccuracy& accuracy, CalibratedIntervals& ranges, Work& work) {
  const Result<CostModels> unknown = load_cost_models({}, Trees::without);
  if (!unknown) return unknown.error();
  const Result<Device> gpu = unknown->devices.find(kDefaultGpu);
  if (!gpu) return gpu.error();
  accuracy.gpu = gpu->name;
  const auto before = busy_times(runs, *unknown, work);
  if (!before) return before.error();
  accuracy.busy.push_back(row_of("not calibrated", *before));
  for (const std::string& file : machines) {
    CostModels calibrated = *unknown;
    if (const Status status = use_machine(file, calibrated); !status.ok()) return status;
    if (calibrated.machine == nullptr || calibrated.machine->gpu() != gpu->name) {
      return Error{fmt::format("was not read on a {}", gpu->name), file, "give files of that GPU"};
    }
    auto pairs = busy_times(runs, calibrated, work);
    if (!pairs) return pairs.error();
    const RatioInterval range = range_in("ood", *pairs);
    set_ranges(range, *pairs);
    CalibrationRow row = row_of(std::filesystem::path(file).filename().string(), *pairs);
    row.readings = static_cast<int64_t>(calibrated.machine->machine().ops.size());
    row.minutes = calibrated.machine->machine().card.minutes;
    if (ranges.gpu.empty() || ranges.gpu.back().readings < row.readings) ranges.gpu.push_back({row.readings, range});
    accuracy.busy.push_back(std::move(row));
  }
  const Result<CostModels> whole = load_cost_models();
  if (!whole) return whole.error();
  const auto after = busy_times(runs, *whole, work);
  if (!after) return after.error();
  accuracy.busy.push_back(row_of("trees of the whole training set", *after));
  return {};
}

}  // namespace

Result<CalibrationAccuracy> evaluate_calibration(const CalibrationSuiteOptions& options, const WorkControl& control) {
  Work work(control);
  const auto runs = judged_runs(options);
  if (!runs) return runs.error();
  CalibrationAccuracy accuracy;
  CalibratedIntervals ranges;
  if (const Status status = judge_gpu(*runs, options.machines, accuracy, ranges, work); !status.ok()) {
    return status.error();
  }
  if (const Status status = judge_host(*runs, accuracy, ranges, work); !status.ok()) return status.error();
  if (!options.keep) return accuracy;
  const Result<std::filesystem::path> folder = data_dir();
  if (!folder) return folder.error();
  const std::filesystem::path file = *folder / kCalibratedIntervalsFile;
  if (const Status status = save_calibrated_intervals(ranges, file); !status.ok()) return status.error();
  accuracy.kept = file.string();
  return accuracy;
}

}  // namespace forerun
