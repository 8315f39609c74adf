// The step of many GPUs against runs that others published: `forerun eval --suite megatron` and `llm-foundry`.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "base/data_dir.h"
#include "base/datasets.h"
#include "cost/collective/link_name.h"
#include "device/catalogue.h"
#include "lab/calibrate/efficiency_regression.h"
#include "lab/eval/scale_suite.h"
#include "lab/papers/published_runs.h"
#include "scale/step.h"
#include "scale/transformer_cost.h"

namespace forerun {
namespace {

constexpr int64_t kNodeGpus = 8;

struct PublishedSetup {
  DeviceCatalogue devices;
  scale::Efficiency efficiency;
};

Result<PublishedSetup> published_setup(const std::string& efficiency_file) {
  const auto data = data_dir();
  if (!data) return data.error();
  auto devices = load_devices(*data / "devices");
  if (!devices) return devices.error();
  auto efficiency =
      scale::read_efficiency(efficiency_file.empty() ? (*data / scale::kMegatronEfficiency).string() : efficiency_file);
  if (!efficiency) return efficiency.error();
  return PublishedSetup{std::move(*devices), std::move(*efficiency)};
}

Result<scale::StepSetup> step_setup(const PublishedSetup& known, const std::string& gpu, const std::string& network,
                                    int64_t gpus) {
  const auto device = known.devices.find(gpu);
  if (!device) return device.error();
  const auto between = network_by_name(network, known.devices);
  if (!between) return between.error();
  scale::StepSetup setup{.cluster = {}, .efficiency = known.efficiency, .bytes = {}, .unit = Unit::bf16_tensor};
  setup.cluster = {*device, gpus, kNodeGpus, link_within(*device, kNodeGpus), *between};
  return setup;
}

Result<scale::Step> published_step(const scale::Transformer& model, const scale::StepSetup& setup,
                                   const scale::Plan& plan) {
  const scale::CostSource costs = [&](const scale::Cut& cut) {
    return scale::transformer_costs(model, setup.cluster, setup.efficiency, {.unit = setup.unit}, cut);
  };
  return estimate_step(costs, setup, plan);
}

}  // namespace

Result<ScaleAccuracy> evaluate_megatron(const ScaleSuiteOptions& options) {
  auto known = published_setup(options.efficiency);
  if (!known) return known.error();
  const auto table = scale::megatron_table();
  if (!table) return table.error();
  ScaleAccuracy accuracy{.suite = "megatron"};
  accuracy.title = "GPT models of Megatron on A100 machines (Narayanan et al. 2021, table 1): step time";
  for (const scale::MegatronRun& run : table->runs) {
    auto setup = step_setup(*known, table->gpu, table->network, run.gpus);
    if (!setup) return setup.error();
    setup->megatron = true;
    const auto step = published_step(transformer_of(run, *table), *setup, plan_of(run));
    if (!step) return step.error();
    const std::string chunks = run.chunks > 1 ? fmt::format(" x{}", run.chunks) : "";
    accuracy.cases.push_back({.group = fmt::format("{}, tp {} pp {}{}", run.name, run.tensor, run.pipeline, chunks),
                              .gpus = run.gpus,
                              .fitted = scale::is_fitted_to(run),
                              .measured = Nanoseconds(std::llround(step_seconds(run, *table) * 1e9)),
                              .predicted = step->time});
  }
  return accuracy;
}

Result<ScaleAccuracy> evaluate_foundry(const std::string& path) {
  auto known = published_setup("");
  if (!known) return known.error();
  known->efficiency.fused_attention = true;
  known->efficiency.shapes.clear();
  std::string file = path;
  if (file.empty()) {
    const auto table = dataset("llm_foundry/benchmark.csv");
    if (!table) return table.error();
    file = table->string();
  }
  const auto models = scale::mpt_models();
  if (!models) return models.error();
  const auto table = scale::read_foundry_runs(file, *models);
  if (!table) return table.error();
  ScaleAccuracy accuracy{.suite = "llm-foundry"};
  accuracy.title =
      fmt::format("MPT models of LLM Foundry with FSDP: step time, nothing fitted to it; {} runs in 8 bits left out",
                  table->passed_over);
  for (const scale::FoundryRun& run : table->runs) {
    const auto setup = step_setup(*known, run.gpu, run.gpu == "h100" ? "8xndr" : "1600Gb/s", run.gpus);
    if (!setup) return setup.error();
    const auto model = transformer_of(run, *models);
    if (!model) return model.error();
    scale::Plan plan;
    plan.data = run.gpus;
    plan.micro_batch = run.micro_batch;
    plan.micro_batches = run.batch / (run.gpus * run.micro_batch);
    plan.zero = run.zero;
    plan.checkpoint = run.checkpoint;
    const auto step = published_step(*model, *setup, plan);
    if (!step) return step.error();
    const double seconds = static_cast<double>(run.batch * run.sequence) / run.tokens_per_second;
    accuracy.cases.push_back(
        {.group = fmt::format("{}, {} tokens", run.gpu, run.sequence <= 2048 ? "up to 2048" : "more"),
         .gpus = run.gpus,
         .fitted = false,
         .measured = Nanoseconds(std::llround(seconds * 1e9)),
         .predicted = step->time});
  }
  return accuracy;
}

}  // namespace forerun
