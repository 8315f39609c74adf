#include "lab/eval/scale_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/data_dir.h"
#include "base/datasets.h"
#include "base/output_file.h"
#include "cost/collective/link_name.h"
#include "device/catalogue.h"
#include "lab/calibrate/efficiency_regression.h"
#include "lab/papers/published_runs.h"
#include "lab/papers/vtrain/megatron_rows.h"

namespace forerun {
namespace {

constexpr int64_t kFittedGpus = 2;
constexpr int64_t kMachineGpus = 8;

struct VtrainPaths {
  std::string rows;
  std::string tables;
  std::string efficiency;
  std::filesystem::path data;
};

Result<VtrainPaths> vtrain_paths(const ScaleSuiteOptions& options) {
  const auto data = data_dir();
  if (!data) return data.error();
  VtrainPaths paths;
  paths.rows = options.rows;
  paths.tables = options.tables;
  if (paths.rows.empty()) {
    const auto rows = dataset("vtrain/ground_truth_single.csv");
    if (!rows) return rows.error();
    paths.rows = rows->string();
  }
  if (paths.tables.empty()) {
    const auto tables = dataset("vtrain/trace/a100");
    if (!tables) return tables.error();
    paths.tables = tables->string();
  }
  paths.efficiency = options.efficiency.empty() ? (*data / scale::kMegatronEfficiency).string() : options.efficiency;
  paths.data = *data;
  return paths;
}

Result<scale::GpuCluster> vtrain_cluster(const VtrainPaths& paths, const std::string& network) {
  const auto devices = load_devices(paths.data / "devices");
  if (!devices) return devices.error();
  const auto gpu = devices->find("a100-80gb");
  if (!gpu) return gpu.error();
  const auto between = network_by_name(network, *devices);
  if (!between) return between.error().within("--network");
  return scale::GpuCluster{*gpu, kMachineGpus, kMachineGpus, link_within(*gpu, kMachineGpus), *between};
}

Result<ScaleAccuracy> evaluate_rows(const std::vector<MegatronRow>& rows, const scale::GpuCluster& cluster,
                                    const scale::Efficiency& efficiency) {
  const auto published = scale::vtrain_error();
  if (!published) return published.error();
  ScaleAccuracy accuracy{.suite = "vtrain"};
  accuracy.title = "Megatron on A100 machines (vTrain's rows): iteration time, constants fitted to two GPUs alone";
  accuracy.reference = fmt::format("vTrain's own error is {:.2f} % on one machine.", 100 * *published);
  for (const MegatronRow& row : rows) {
    accuracy.cases.push_back({.group = fmt::format("tp {} dp {} pp {}", row.tensor, row.data, row.pipeline),
                              .gpus = row.gpus,
                              .fitted = row.gpus == kFittedGpus,
                              .measured = row.iteration,
                              .predicted = scale::predicted_time(row, cluster, efficiency)});
  }
  return accuracy;
}

Result<std::vector<MegatronRow>> vtrain_rows(const VtrainPaths& paths) {
  auto rows = read_megatron_rows(paths.rows);
  if (rows) return rows;
  Error problem = rows.error();
  problem.remedy += "; or name the file with --data";
  return problem;
}

}  // namespace

Result<ScaleAccuracy> evaluate_vtrain(const ScaleSuiteOptions& options) {
  const auto paths = vtrain_paths(options);
  if (!paths) return paths.error();
  const auto cluster = vtrain_cluster(*paths, options.network);
  if (!cluster) return cluster.error();
  const auto efficiency = scale::read_efficiency(paths->efficiency);
  if (!efficiency) return efficiency.error();
  const auto rows = vtrain_rows(*paths);
  if (!rows) return rows.error();
  return evaluate_rows(*rows, *cluster, *efficiency);
}

Result<ScaleCalibration> calibrate_scale(const ScaleSuiteOptions& options, const std::string& out) {
  const auto paths = vtrain_paths(options);
  if (!paths) return paths.error();
  const auto cluster = vtrain_cluster(*paths, options.network);
  if (!cluster) return cluster.error();
  const auto rows = vtrain_rows(*paths);
  if (!rows) return rows.error();
  const auto tables = read_all_reduce_tables(paths->tables);
  if (!tables) return tables.error();
  std::vector<MegatronRow> fitted;
  std::copy_if(rows->begin(), rows->end(), std::back_inserter(fitted),
               [](const MegatronRow& row) { return row.gpus == kFittedGpus; });
  if (fitted.empty())
    return Error{"no iteration on two GPUs is there to fit to", paths->rows, "use vTrain's table of one machine"};

  scale::Efficiency first;
  first.fused_attention = false;
  first.links.within = scale::calibrate_link(*tables, cluster->within.bandwidth);
  first.links.between = {.call_us = first.links.within.call_us, .step_us = 0, .share = 0.85};
  scale::EfficiencyRegression report = scale::calibrate_efficiency(fitted, *cluster, first);
  report.efficiency.source = fmt::format(
      "`forerun calibrate scale`: {} Megatron iterations on two A100 and {} NCCL all-reduces on up to eight, published "
      "by "
      "the "
      "authors of vTrain (MIT licence); `between` assumed: NCCL reaches 85 % of InfiniBand's rate; `hopper`: "
      "Megatron-LM reports 47 to 48 % of the H100's peak for large models, and 57 % of the A100's",
      fitted.size(), tables->size());
  ScaleCalibration outcome;
  outcome.file = out.empty() ? (paths->data / scale::kMegatronEfficiency).string() : out;
  if (Status status = write_whole_file(outcome.file, scale::to_json(report.efficiency)); !status) return status.error();
  outcome.rows = static_cast<int64_t>(fitted.size());
  outcome.formulas_error = report.formulas_error;
  outcome.error = report.error;
  auto accuracy = evaluate_rows(*rows, *cluster, report.efficiency);
  if (!accuracy) return accuracy.error();
  outcome.accuracy = std::move(*accuracy);
  return outcome;
}

}  // namespace forerun
