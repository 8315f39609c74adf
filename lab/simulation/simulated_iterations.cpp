#include "lab/simulation/simulated_iterations.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "base/parallel.h"
#include "lab/dataset/record_example.h"
#include "lab/simulation/drawn_model.h"
#include "predict/predict.h"

namespace forerun::simulation {
namespace {

// What is measured is kept within these too (data/h200/README.md).
constexpr double kLongestMs = 400;
constexpr int64_t kMostOps = 5000;
constexpr int kTries = 30;       // draws for an example until one fits
constexpr size_t kBlock = 2048;  // examples between two looks at whether to go on

// How much hosts differ, and calibrations of one host: deviations of logarithms, round figures set by hand after a look at
// `forerun data noise data/h200` (host-bound repeats differ by 23 % in the mean).
constexpr double kHostSpread = 0.2;
constexpr double kCalibrationSpread = 0.06;
// What repeats differ by where the GPU is the bottleneck.
constexpr double kGpuSpread = 0.005;

TrainingSetup draw_setup(InputKind kind, Drawing& draw) {
  TrainingSetup setup;
  setup.precision =
      draw.weighted<Precision>({{Precision::fp32, 0.4}, {Precision::tf32, 0.15}, {Precision::amp_bf16, 0.45}});
  OptimizerSpec& optimizer = setup.optimizer;
  optimizer.kind = draw.weighted<OptimizerKind>({{OptimizerKind::sgd, 0.35},
                                                 {OptimizerKind::adam, 0.2},
                                                 {OptimizerKind::adamw, 0.25},
                                                 {OptimizerKind::rmsprop, 0.12},
                                                 {OptimizerKind::adagrad, 0.08}});
  const bool can_fuse = optimizer.kind == OptimizerKind::sgd || optimizer.kind == OptimizerKind::adam ||
                        optimizer.kind == OptimizerKind::adamw;
  optimizer.impl = draw.weighted<OptimizerImpl>(
      {{OptimizerImpl::foreach, 0.5}, {OptimizerImpl::forloop, 0.15}, {OptimizerImpl::fused, can_fuse ? 0.35 : 0}});
  const double momentum = optimizer.kind == OptimizerKind::sgd       ? 0.65
                          : optimizer.kind == OptimizerKind::rmsprop ? 0.25
                                                                     : 0;
  optimizer.momentum = draw.chance(momentum) ? 0.9 : 0;
  optimizer.weight_decay = draw.chance(optimizer.kind == OptimizerKind::adamw ? 0.8 : 0.4) ? 0.01 : 0;
  setup.channels_last = (kind == InputKind::image || kind == InputKind::dense) && draw.chance(0.35);
  return setup;
}

// The idle time of the GPU behind each op in a steady iteration: two lanes, op by op.
std::vector<double> gaps_behind(const std::vector<LaneOp>& ops, const LaneSetup& setup) {
  constexpr int kIterations = 4;
  std::vector<double> gaps(ops.size());
  double host = 0;
  double gpu = 0;   // when it has run everything
  size_t last = 0;  // op that ran last
  bool any = false;
  for (int round = 0; round < kIterations; ++round) {
    std::fill(gaps.begin(), gaps.end(), 0.0);
    host += static_cast<double>(setup.per_iteration.value);
    for (size_t i = 0; i < ops.size(); ++i) {
      const LaneOp& op = ops[i];
      const double begun = host;
      host += static_cast<double>(op.host.value);
      if (op.kernels > 0) {
        const double launched = begun + (host - begun) / op.kernels;
        const double start = std::max(gpu, launched);
        if (any) gaps[last] += start - gpu;
        const double busy = static_cast<double>(op.gpu.value - op.overlapped.value);
        gpu = std::max(start + busy + static_cast<double>(setup.gap.value) * (op.kernels - 1), host);
        gaps[i] += std::max(0.0, gpu - start - busy);
        last = i;
        any = true;
      }
      if (op.waits) host = std::max(host, gpu);
    }
  }
  return gaps;
}

std::optional<TrainingRun> draw_run(uint64_t seed, int64_t number, const Device& device, Drawing& draw) {
  const std::vector<std::string>& families = drawn_families();
  const std::string family = draw.one_of(families);
  const Load load = draw.weighted<Load>({{Load::light, 0.4}, {Load::full, 0.47}, {Load::largest, 0.13}});
  auto model = draw_model(family, load, draw);
  if (!model) return std::nullopt;
  ModelRequest request{.model = fmt::format("simulated-{}/{:06d}-{}", seed, number, family),
                       .settings = {},
                       .setup = draw_setup(model->input.kind, draw),
                       .default_optimizer = false};
  auto run = run_of({model->family, model->input, std::move(model->forward)}, request, device);
  if (!run || static_cast<int64_t>(run->graph.op_count()) > kMostOps) return std::nullopt;
  return std::move(*run);
}

void keep_forward_ops(learn::Example& example, const learn::DataSet& data) {
  size_t count = 0;
  while (count < example.ops.size() && data.rows()[example.ops[count]].phase == Phase::forward) ++count;
  example.ops.resize(count);
  std::erase_if(example.edges, [&](const learn::DataEdge& edge) { return edge.target >= count; });
}

// One example as a data set of its own; nothing where what was drawn does not fit, or takes too long.
std::optional<learn::DataSet> try_example(uint64_t seed, int64_t number, bool traced, const Device& device,
                                          const CostModels& cost_models, Drawing& draw) {
  const auto run = draw_run(seed, number, device, draw);
  if (!run) return std::nullopt;
  const double slowness = std::exp(kHostSpread * draw.normal());
  OpTimes times = predicted_op_times(*run, device, cost_models, 1 / slowness);
  if (times.iteration_ms > kLongestMs || times.iteration_ms <= 0) return std::nullopt;
  const PredictedMemory memory = predicted_memory(*run, device, cost_models.workspaces);
  if (!memory.fits) return std::nullopt;
  learn::DataSet data;
  learn::Example example = learn::example_of(*run, data);
  example.split = learn::Split::train;
  example.group = kSimulatedGroup + run->family;
  if (draw.chance(0.5)) example.host_slowness = slowness * std::exp(kCalibrationSpread * draw.normal());
  const double noise = std::exp(kGpuSpread * draw.normal());
  example.targets.iteration_ms = times.iteration_ms * noise;
  example.targets.gpu_busy_ms = times.gpu_busy_ms * noise;
  example.targets.peak_bytes = static_cast<double>(memory.estimate.peak_allocated.value);
  example.targets.reserved_bytes = static_cast<double>(memory.estimate.peak_reserved.value);
  if (traced) {
    example.targets.op_us = std::move(times.gpu_us);
    example.targets.gap_us = std::move(times.gap_us);
    example.targets.host_us = std::move(times.host_us);
  } else {
    keep_forward_ops(example, data);
  }
  data.add(std::move(example));
  return data;
}

}  // namespace

OpTimes predicted_op_times(const TrainingRun& run, const Device& device, const CostModels& cost_models, double speed) {
  const std::vector<OpCost> costs = gpu_costs(run, device, cost_models);
  const HostCosts host = host_costs(run.graph, costs, cost_models.host, speed);
  const std::vector<LaneOp> lanes = lane_ops(run.graph, costs, host);
  const LaneSetup setup{.gap = device.launch_gap, .per_iteration = host.per_iteration};
  const IterationTiming timing = host_gpu_timeline(lanes, setup);
  OpTimes times;
  times.iteration_ms = static_cast<double>(timing.iteration.value) / 1e6;
  times.gpu_busy_ms = static_cast<double>(timing.gpu_busy.value) / 1e6;
  const std::vector<double> gaps = gaps_behind(lanes, setup);
  double gap_sum = 0;
  for (const double gap : gaps) gap_sum += gap;
  const double idle = static_cast<double>(timing.iteration.value - timing.gpu_busy.value);
  const double scale = gap_sum > 0 ? std::max(idle, 0.0) / gap_sum : 0;
  for (size_t i = 0; i < lanes.size(); ++i) {
    times.gpu_us.push_back(static_cast<float>(static_cast<double>(lanes[i].gpu.value) / 1e3));
    times.host_us.push_back(static_cast<float>(static_cast<double>(lanes[i].host.value) / 1e3));
    times.gap_us.push_back(static_cast<float>(gaps[i] * scale / 1e3));
  }
  if (!times.host_us.empty())
    times.host_us[0] += static_cast<float>(static_cast<double>(host.per_iteration.value) / 1e3);
  return times;
}

std::optional<learn::DataSet> simulated_example(const SimulationOptions& options, int64_t number, const Device& device,
                                                const CostModels& cost_models) {
  Drawing draw(options.seed * 0x9E3779B97F4A7C15ULL + static_cast<uint64_t>(number));
  std::optional<learn::DataSet> example;
  for (int k = 0; k < kTries && !example; ++k) {
    example = try_example(options.seed, number, number < options.traced, device, cost_models, draw);
  }
  return example;
}

void SimulatedData::add(const std::optional<learn::DataSet>& example) {
  ++count_;
  if (example) {
    data_.append(*example);
  } else {
    ++missing_;
  }
}

Result<learn::DataSet> SimulatedData::finish() {
  if (2 * missing_ > count_) {
    return Error{"most of what was drawn does not fit on the GPU", gpu_, "simulate a GPU with more memory"};
  }
  data_.source = fmt::format("{} simulated iterations on {}, seed {}{}", data_.examples().size(), gpu_, seed_,
                             analytic_ ? ", analytic" : "");
  return std::move(data_);
}

Result<learn::DataSet> simulate_iterations(const SimulationOptions& options, const Device& device,
                                           const CostModels& cost_models, const WorkControl& control) {
  SimulatedData data(std::to_string(options.seed), device.name, !cost_models.residual_model);
  Work work(control, "iterations", options.count);
  for (int64_t first = 0; first < options.count; first += static_cast<int64_t>(kBlock)) {
    const auto count = static_cast<size_t>(std::min<int64_t>(kBlock, options.count - first));
    std::vector<std::optional<learn::DataSet>> block(count);
    const Status status = parallel_for(count, options.threads, work, [&](size_t i) {
      block[i] = simulated_example(options, first + static_cast<int64_t>(i), device, cost_models);
    });
    if (!status.ok()) return status.error();
    for (const auto& one : block) data.add(one);
  }
  return data.finish();
}

}  // namespace forerun::simulation
