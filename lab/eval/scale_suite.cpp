#include "lab/eval/scale_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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
constexpr const char* kSeveralMachines = "vtrain/ground_truth_multi.csv";

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

Result<scale::GpuCluster> machines_of(const VtrainPaths& paths, const std::string& gpu_name,
                                      const std::string& network) {
  const auto devices = load_devices(paths.data / "devices");
  if (!devices) return devices.error();
  const auto gpu = devices->find(gpu_name);
  if (!gpu) return gpu.error();
  const auto between = network_by_name(network, *devices);
  if (!between) return between.error().within("--network");
  return scale::GpuCluster{*gpu, kMachineGpus, kMachineGpus, link_within(*gpu, kMachineGpus), *between};
}

Result<scale::GpuCluster> vtrain_cluster(const VtrainPaths& paths, const std::string& network) {
  return machines_of(paths, "a100-80gb", network);
}

// Those of Megatron's published runs that constants are fitted to.
Result<std::vector<scale::RunAtScale>> runs_to_fit(const VtrainPaths& paths) {
  const auto table = scale::megatron_table();
  if (!table) return table.error();
  const auto cluster = machines_of(paths, table->gpu, table->network);
  if (!cluster) return cluster.error();
  std::vector<scale::RunAtScale> runs;
  for (const scale::MegatronRun& run : table->runs) {
    if (!scale::is_fitted_to(run)) continue;
    runs.push_back({.model = transformer_of(run, *table),
                    .plan = plan_of(run),
                    .cluster = *cluster,
                    .measured = Nanoseconds(std::llround(step_seconds(run, *table) * 1e9))});
    runs.back().cluster.gpus = run.gpus;
  }
  return runs;
}

Result<ScaleAccuracy> evaluate_rows(const std::vector<MegatronRow>& rows, const scale::GpuCluster& cluster,
                                    const scale::Efficiency& efficiency) {
  const auto published = scale::vtrain_error();
  if (!published) return published.error();
  ScaleAccuracy accuracy{.suite = "vtrain"};
  accuracy.title = "Megatron on A100 machines (vTrain's rows): iteration time; of these, constants fitted to two GPUs";
  accuracy.machine = kMachineGpus;
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

// Nothing where they are not named, and no data set has them.
Result<std::vector<MegatronRow>> rows_of_several(const ScaleSuiteOptions& options) {
  if (!options.several.empty()) return read_megatron_rows(options.several);
  const auto file = dataset(kSeveralMachines);
  if (!options.rows.empty() || !file) return std::vector<MegatronRow>();
  return read_megatron_rows(file->string());
}

}  // namespace

Result<ScaleAccuracy> evaluate_vtrain(const ScaleSuiteOptions& options) {
  const auto paths = vtrain_paths(options);
  if (!paths) return paths.error();
  const auto cluster = vtrain_cluster(*paths, options.network);
  if (!cluster) return cluster.error();
  const auto efficiency = scale::read_efficiency(paths->efficiency);
  if (!efficiency) return efficiency.error();
  auto rows = vtrain_rows(*paths);
  if (!rows) return rows.error();
  const auto several = rows_of_several(options);
  if (!several) return several.error();
  rows->insert(rows->end(), several->begin(), several->end());
  auto accuracy = evaluate_rows(*rows, *cluster, *efficiency);
  if (accuracy && several->empty()) {
    accuracy->reference +=
        fmt::format(" Iterations on several machines are not judged: no data set {}.", kSeveralMachines);
  }
  return accuracy;
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

  const auto runs = runs_to_fit(*paths);
  if (!runs) return runs.error();
  scale::Efficiency first;
  first.fused_attention = false;
  first.links.within = scale::calibrate_link(*tables, cluster->within.bandwidth);
  first.links.between = {.call_us = first.links.within.call_us, .step_us = 0, .share = 0.85};
  scale::EfficiencyRegression report = scale::calibrate_efficiency(fitted, *cluster, *runs, first);
  report.efficiency.source = fmt::format(
      "`forerun calibrate scale`: {} Megatron iterations on two A100 and {} NCCL all-reduces on up to eight, published "
      "by the authors of vTrain (MIT licence), and {} runs of one stage on 32 to 256 A100, by those of Megatron-LM "
      "(data/papers/megatron.json); `between` assumed: NCCL reaches 85 % of InfiniBand's rate; `hopper`: "
      "Megatron-LM reports 47 to 48 % of the H100's peak for large models, and 57 % of the A100's",
      fitted.size(), tables->size(), runs->size());
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
