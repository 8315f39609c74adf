#include "lab/calibrate/efficiency_regression.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "lab/calibrate/least_squares.h"
#include "scale/transformer_cost.h"

namespace forerun::scale {
namespace {

constexpr int64_t kGptVocab = 50257;
constexpr double kRowSpread = 0.01;   // of measured times around computed ones
constexpr double kRunSpread = 0.02;   // of published runs, told in whole teraflops
constexpr double kShapeSpread = 0.1;  // of the factors of shapes

struct Fitted {
  double Efficiency::*value;
  double spread;  // of the prior, of the logarithm
};
constexpr Fitted kFitted[] = {
    {&Efficiency::gemm, 0.05},       {&Efficiency::attention, 0.5},       {&Efficiency::misaligned, 1},
    {&Efficiency::score_bytes, 0.5}, {&Efficiency::elementwise, 0.5},     {&Efficiency::loss_bytes, 1},
    {&Efficiency::update, 0.5},      {&Efficiency::host_layer_us, 2},     {&Efficiency::host_tensor_us, 2},
    {&Efficiency::host_head_us, 2},  {&Efficiency::host_embedding_us, 1}, {&Efficiency::hop_us, 1},
    {&Efficiency::sharpness, 0.5}};

double log_ratio(Nanoseconds computed, Nanoseconds measured) {
  return std::log(static_cast<double>(std::max<int64_t>(computed.value, 1)) / static_cast<double>(measured.value));
}

double log_ratio(const MegatronRow& row, const GpuCluster& cluster, const Efficiency& efficiency) {
  return log_ratio(predicted_time(row, cluster, efficiency), row.iteration);
}

Result<Step> megatron_step(const Transformer& model, const Plan& plan, const GpuCluster& cluster,
                           const Efficiency& efficiency) {
  const StepSetup setup{
      .cluster = cluster, .efficiency = efficiency, .bytes = {}, .unit = Unit::fp16_tensor, .megatron = true};
  const CostSource source = [&](const Cut& cut) {
    return transformer_costs(model, setup.cluster, setup.efficiency, {.unit = Unit::fp16_tensor}, cut);
  };
  return estimate_step(source, setup, plan);
}

double log_ratio(const RunAtScale& run, const Efficiency& efficiency) {
  const auto step = megatron_step(run.model, run.plan, run.cluster, efficiency);
  return log_ratio(step ? step->time : Nanoseconds(), run.measured);
}

double mean_error(std::span<const MegatronRow> rows, const GpuCluster& cluster, const Efficiency& efficiency) {
  double sum = 0;
  for (const MegatronRow& row : rows) sum += std::abs(std::exp(log_ratio(row, cluster, efficiency)) - 1);
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

// Logarithms of factors to the constants, then to each shape's layer and ends.
Efficiency with(const Efficiency& first, const std::vector<double>& logs) {
  Efficiency e = first;
  const size_t constants = std::size(kFitted);
  for (size_t i = 0; i < constants; ++i) e.*kFitted[i].value = first.*kFitted[i].value * std::exp(logs[i]);
  for (size_t i = 0; i < e.shapes.size(); ++i) {
    e.shapes[i].layer = std::exp(logs[constants + 2 * i]);
    e.shapes[i].ends = std::exp(logs[constants + 2 * i + 1]);
  }
  return e;
}

std::vector<ShapeCorrection> shapes_of(std::span<const MegatronRow> rows) {
  std::vector<ShapeCorrection> shapes;
  for (const MegatronRow& row : rows) {
    ShapeCorrection shape;
    shape.tokens = static_cast<double>(row.micro_batch * row.sequence);
    shape.hidden = static_cast<double>(row.hidden);
    shape.tensor = static_cast<double>(row.tensor);
    const bool known = std::any_of(shapes.begin(), shapes.end(), [&](const ShapeCorrection& other) {
      return other.tokens == shape.tokens && other.hidden == shape.hidden && other.tensor == shape.tensor;
    });
    if (!known) shapes.push_back(shape);
  }
  std::sort(shapes.begin(), shapes.end(), [](const ShapeCorrection& a, const ShapeCorrection& b) {
    return std::tie(a.tensor, a.hidden, a.tokens) < std::tie(b.tensor, b.hidden, b.tokens);
  });
  return shapes;
}

}  // namespace

Transformer transformer_of(const MegatronRow& row) {
  Transformer t;
  t.name = "megatron";
  t.layers = row.layers;
  t.hidden = row.hidden;
  t.heads = row.heads;
  t.kv_heads = row.heads;
  t.inner = 4 * row.hidden;
  t.vocab = kGptVocab;
  t.positions = row.sequence;
  t.sequence = row.sequence;
  return t;
}

Plan plan_of(const MegatronRow& row) {
  Plan plan;
  plan.tensor = row.tensor;
  plan.data = row.data;
  plan.pipeline = row.pipeline;
  plan.micro_batch = row.micro_batch;
  const int64_t samples = row.data * row.micro_batch;
  plan.micro_batches = (row.global_batch + samples - 1) / samples;
  plan.overlap = false;
  return plan;
}

Nanoseconds predicted_time(const MegatronRow& row, const GpuCluster& cluster, const Efficiency& efficiency) {
  const Transformer model = transformer_of(row);
  GpuCluster machines = cluster;
  machines.gpus = row.gpus;
  Plan plan = plan_of(row);
  auto step = megatron_step(model, plan, machines, efficiency);
  if (step && !step->fits) {
    plan.checkpoint = true;
    step = megatron_step(model, plan, machines, efficiency);
  }
  return step ? step->time : Nanoseconds();
}

bool is_fitted_to(const MegatronRun& run) { return run.pipeline == 1; }

EfficiencyRegression calibrate_efficiency(std::span<const MegatronRow> rows, const GpuCluster& cluster,
                                          std::span<const RunAtScale> runs, const Efficiency& first) {
  const size_t constants = std::size(kFitted);
  Efficiency base = first;
  base.shapes = shapes_of(rows);
  const Residuals residuals_of = [&](const std::vector<double>& logs) {
    const Efficiency e = with(base, logs);
    std::vector<double> residuals;
    for (const MegatronRow& row : rows) residuals.push_back(log_ratio(row, cluster, e) / kRowSpread);
    for (const RunAtScale& run : runs) residuals.push_back(log_ratio(run, e) / kRunSpread);
    for (size_t i = 0; i < constants; ++i) residuals.push_back(logs[i] / kFitted[i].spread);
    for (size_t i = constants; i < logs.size(); ++i) residuals.push_back(logs[i] / kShapeSpread);
    return residuals;
  };
  const Minimum minimum = least_squares(residuals_of, std::vector<double>(constants + 2 * base.shapes.size()));
  EfficiencyRegression report;
  report.efficiency = with(base, minimum.unknowns);
  report.rounds = minimum.rounds;
  report.error = mean_error(rows, cluster, report.efficiency);
  Efficiency formulas = report.efficiency;
  formulas.shapes.clear();
  report.formulas_error = mean_error(rows, cluster, formulas);
  return report;
}

LinkEfficiency calibrate_link(std::span<const AllReduceRow> rows, double bandwidth) {
  // Relative least squares of time = call + 2(n-1) step + 2(n-1)/n bytes / rate, linear in call, step and 1 / rate.
  std::vector<double> normal(9);
  std::vector<double> right(3);
  for (const AllReduceRow& row : rows) {
    const auto n = static_cast<double>(row.ranks);
    const double us = microseconds(row.time);
    const double x[3] = {1 / us, 2 * (n - 1) / us,
                         2 * (n - 1) / n * static_cast<double>(row.bytes.value) * 1e6 / bandwidth / us};
    // Tables step evenly in bytes; by this weight every doubling counts the same.
    const double weight = 1 / static_cast<double>(row.bytes.value);
    for (size_t i = 0; i < 3; ++i) {
      right[i] += weight * x[i];
      for (size_t j = 0; j < 3; ++j) normal[3 * i + j] += weight * x[i] * x[j];
    }
  }
  const std::vector<double> solution = solve_symmetric(normal, right);
  if (solution.empty() || solution[2] <= 0) return {};
  return {std::max(solution[0], 0.0), std::max(solution[1], 0.0), 1 / solution[2]};
}

}  // namespace forerun::scale
