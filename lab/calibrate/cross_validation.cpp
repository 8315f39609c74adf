#include "lab/calibrate/cross_validation.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/parallel.h"
#include "lab/calibrate/calibrate_host.h"
#include "lab/training_data/measured_ops.h"
#include "predict/predict.h"
#include "records/data_split.h"

namespace forerun {
namespace {

using Groups = std::vector<std::vector<std::string>>;

// What the fits learn from, of all training families.
struct Measured {
  std::vector<hybrid::MeasuredOp> ops;
  std::vector<HostSample> iterations;
};

Result<Measured> read_measured(const CrossValidation& request, const TrainingPart& part,
                               const CostModels& cost_models) {
  Measured measured;
  auto ops = load_measured_ops(request.files, part, cost_models, request.problem);
  if (!ops) return ops.error();
  measured.ops = std::move(*ops);
  auto iterations = load_host_samples(request.files, part, [](const DataProblem&) {});
  if (!iterations) return iterations.error();
  measured.iterations = std::move(*iterations);
  return measured;
}

// CostModels fitted to all training families but these.
Result<CostModels> fit_without(const CrossValidation& request, const Measured& measured,
                               const std::vector<std::string>& without, CostModels cost_models,
                               const WorkControl& silent) {
  const auto stays = [&](const auto& one) {
    return std::find(without.begin(), without.end(), one.family) == without.end();
  };
  std::vector<hybrid::MeasuredOp> ops;
  std::copy_if(measured.ops.begin(), measured.ops.end(), std::back_inserter(ops), stays);
  auto residual_model = hybrid::train(std::move(ops), request.growth, silent);
  if (!residual_model) return residual_model.error();
  const Result<Device> gpu = cost_models.devices.find(kDefaultGpu);
  if (!gpu) return gpu.error();
  residual_model->gpu = gpu->name;
  std::vector<HostSample> iterations;
  std::copy_if(measured.iterations.begin(), measured.iterations.end(), std::back_inserter(iterations), stays);
  auto host = calibrate_host_costs(iterations);
  if (!host) return host.error();
  cost_models.residual_model = std::move(*residual_model);
  cost_models.host = host->constants;
  return cost_models;
}

// One fit for each group, several at a time; in the groups' order.
Result<std::vector<CostModels>> fit_groups(const CrossValidation& request, const Measured& measured,
                                           const Groups& groups, const CostModels& plain, const WorkControl& control) {
  std::vector<std::optional<Result<CostModels>>> fits(groups.size());
  const WorkControl silent{.progress = {}, .stop = control.stop, .budget = control.budget};
  Work work(control, "groups of families", static_cast<int64_t>(groups.size()));
  const Status status = parallel_for(groups.size(), request.threads, work, [&](size_t i) {
    fits[i] = fit_without(request, measured, groups[i], plain, silent);
  });
  if (!status.ok()) return status.error();
  std::vector<CostModels> fitted;
  for (auto& fit : fits) {
    if (!*fit) return fit->error();
    fitted.push_back(std::move(**fit));
  }
  return fitted;
}

Status predict_left_out(const CrossValidation& request, const TrainingPart& part,
                        const std::map<std::string, const CostModels*>& without, std::vector<LeftOutRun>& runs) {
  const auto take = [&](const RunRecord& record, const DataPlace& /*place*/) {
    const auto fitted = without.find(record.run.family);
    if (fitted == without.end() || !part.contains(record.run) || !record.has_graph || !record.measured) return;
    const Measurement& m = *record.measured;
    if (m.status != RunStatus::ok || m.pipelined_median_ms <= 0 || m.gpu_busy_us <= 0) return;
    const CostModels& cost_models = *fitted->second;
    const Result<Device> device = cost_models.devices.find(record.run.environment.gpu);
    if (!device) return;
    const auto run = for_device(record.run, *device);
    if (!run) return;
    const IterationTiming times = predicted_times(*run, *device, cost_models);
    runs.push_back({.id = record.run.id,
                    .family = record.run.family,
                    .iteration_ms = milliseconds(times.iteration),
                    .gpu_busy_ms = milliseconds(times.gpu_busy),
                    .host_bound = times.bound == Bottleneck::host,
                    .measured_ms = m.pipelined_median_ms,
                    .measured_gpu_ms = m.gpu_busy_us / 1e3});
  };
  return scan_files(request.files, Fields::inputs_and_measurements,
                    {.run = take, .sample = {}, .problem = [](const DataProblem&) {}});
}

}  // namespace

std::vector<std::vector<std::string>> fold_families(const std::vector<std::string>& families, int folds) {
  const size_t count = folds <= 0 ? families.size() : std::min(families.size(), static_cast<size_t>(folds));
  std::vector<std::vector<std::string>> groups(count);
  for (size_t i = 0; i < families.size(); ++i) groups[i % count].push_back(families[i]);
  return groups;
}

Result<std::vector<LeftOutRun>> cross_validate(const CrossValidation& request, const WorkControl& control) {
  const Result<CostModels> cost_models = load_cost_models({}, Trees::without);
  if (!cost_models) return cost_models.error();
  const auto part = TrainingPart::beside(request.files);
  if (!part) return part.error();
  const auto groups = fold_families({part->families().begin(), part->families().end()}, request.folds);
  if (groups.size() < 2) {
    return Error{"there are not two families to leave out in turn", "", "give records of several families"};
  }
  const auto measured = read_measured(request, *part, *cost_models);
  if (!measured) return measured.error();
  const auto fitted = fit_groups(request, *measured, groups, *cost_models, control);
  if (!fitted) return fitted.error();
  std::map<std::string, const CostModels*> without;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const std::string& family : groups[i]) without[family] = &(*fitted)[i];
  }
  std::vector<LeftOutRun> runs;
  if (const Status predicted = predict_left_out(request, *part, without, runs); !predicted.ok())
    return predicted.error();
  return runs;
}

}  // namespace forerun
