#include "lab/eval/run_suite.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "api/scale.h"
#include "lab/papers/published_plans.h"
#include "scale/plan.h"

namespace forerun {
namespace {

constexpr int64_t kRunNodeGpus = 8;
constexpr int64_t kLargestMicroBatch = 16;  // of micro-batches that a document does not tell

struct AskedStep {
  Nanoseconds time, low, high;
  bool fits = true;
};

ScaleQuestion question_of(const scale::PublishedPlan& run, int64_t micro_batch, bool recompute) {
  ScaleQuestion question{.model = run.zoo,
                         .settings = run.settings,
                         .gpu = run.gpu,
                         .gpus = {run.gpus},
                         .node = kRunNodeGpus,
                         .network = run.network,
                         .strategy = run.plan + (recompute ? ",checkpoint" : ""),
                         .global_batch = run.batch,
                         .micro_batch = micro_batch,
                         .megatron = run.megatron,
                         .plain_attention = run.plain_attention};
  if (const auto precision = precision_named(run.precision)) {
    question.setup.precision = *precision;
    question.default_precision = false;
  }
  return question;
}

Result<AskedStep> asked_step(const scale::PublishedPlan& run, int64_t micro_batch, bool recompute,
                             const CostModels& cost_models) {
  const auto answer = scale_out(question_of(run, micro_batch, recompute), cost_models);
  if (!answer) return answer.error();
  const scale::Step& step = answer->steps.front();
  return AskedStep{step.time, step.low, step.high, step.fits};
}

Nanoseconds part_way(Nanoseconds without, Nanoseconds with, double share) {
  return without + Nanoseconds(std::llround(share * static_cast<double>((with - without).value)));
}

// With so much of the layers run twice.
Result<AskedStep> step_of(const scale::PublishedPlan& run, int64_t micro_batch, const CostModels& cost_models) {
  auto with = asked_step(run, micro_batch, run.recompute > 0, cost_models);
  if (!with || run.recompute == 0 || run.recompute == 1) return with;
  const auto without = asked_step(run, micro_batch, false, cost_models);
  if (!without) return without.error();
  return AskedStep{part_way(without->time, with->time, run.recompute), part_way(without->low, with->low, run.recompute),
                   part_way(without->high, with->high, run.recompute), with->fits};
}

// Where the micro-batch is not told: the fastest that fits.
Result<AskedStep> best_step(const scale::PublishedPlan& run, const CostModels& cost_models) {
  if (run.micro_batch > 0) return step_of(run, run.micro_batch, cost_models);
  const auto request = scale::parse_plan(run.plan);
  if (!request) return request.error();
  std::optional<AskedStep> best;
  for (int64_t micro_batch = 1; micro_batch <= kLargestMicroBatch; micro_batch *= 2) {
    if (!scale::complete(*request, run.gpus, kRunNodeGpus, run.batch, micro_batch)) continue;
    const auto step = step_of(run, micro_batch, cost_models);
    if (!step) return step.error();
    if (step->fits && (!best || step->time < best->time)) best = *step;
  }
  if (!best) return Error{"no micro-batch fits", run.model, ""};
  return *best;
}

Result<SearchCase> search_case(const scale::PublishedPlan& run, const RunCase& published,
                               const CostModels& cost_models) {
  ScaleQuestion question = question_of(run, 0, false);
  question.strategy.clear();
  question.search = true;
  const auto answer = scale_out(question, cost_models);
  if (!answer) return answer.error();
  if (answer->steps.empty()) return Error{"no plan fits", run.model, ""};
  const scale::Step& first = answer->steps.front();
  return SearchCase{published, describe(first.plan), first.time, first.unvalidated.empty()};
}

std::string name_of_run(const scale::PublishedPlan& run) {
  return fmt::format("{}, {} on {} {}", run.source, run.model, run.gpus, run.gpu);
}

Result<std::vector<scale::PublishedPlan>> chosen_runs(const RunSuiteOptions& options) {
  Result<std::vector<scale::PublishedPlan>> all = std::vector<scale::PublishedPlan>();
  if (options.runs.empty()) {
    all = scale::published_plans();
  } else {
    auto file = JsonObject::read(options.runs);
    if (!file) return file.error();
    all = scale::published_plans(std::move(*file));
  }
  if (!all || options.source.empty()) return all;
  std::erase_if(*all, [&](const scale::PublishedPlan& run) { return run.source != options.source; });
  if (all->empty()) return Error{"no source is called '" + options.source + "'", "--source", "the table names them"};
  return all;
}

}  // namespace

Result<RunAccuracy> evaluate_runs(const RunSuiteOptions& options, const CostModels& cost_models) {
  const auto runs = chosen_runs(options);
  if (!runs) return runs.error();
  RunAccuracy accuracy;
  accuracy.each = options.each;
  for (const scale::PublishedPlan& run : *runs) {
    const auto step = best_step(run, cost_models);
    if (!step) {
      accuracy.refused.push_back({name_of_run(run), step.error().message()});
      continue;
    }
    accuracy.cases.push_back({.source = run.source,
                              .model = run.model,
                              .gpu = run.gpu,
                              .plan = run.plan,
                              .gpus = run.gpus,
                              .judges = run.judges,
                              .sure = run.sure,
                              .measured = Nanoseconds(std::llround(run.step_seconds * 1e9)),
                              .predicted = step->time,
                              .low = step->low,
                              .high = step->high});
    if (!options.search || !run.search) continue;
    auto found = search_case(run, accuracy.cases.back(), cost_models);
    if (!found) return found.error();
    accuracy.searches.push_back(std::move(*found));
  }
  return accuracy;
}

}  // namespace forerun
