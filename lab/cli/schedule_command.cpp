// forerun schedule --predictor ets: jobs that name models, with the durations that a learned predictor tells.
#include "cli/schedule_command.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "lab/ask/ask.h"
#include "lab/cli/lab_verbs.h"

namespace forerun::cli {
namespace {

Result<IterationOracle> oracle_of(const std::string& name) {
  auto loaded = LearnedPredictor::load(name);
  if (!loaded) return loaded.error();
  auto predictor = std::make_shared<LearnedPredictor>(std::move(*loaded));
  return IterationOracle([predictor](const TrainingRun& run, const CostModels& cost_models) -> Result<Nanoseconds> {
    const auto answer = predictor->ask(run, cost_models);
    if (!answer) return answer.error();
    if (!answer->prediction.iteration_ms) return Error{"'" + predictor->name() + "' does not tell time", "", ""};
    return Nanoseconds(std::max<int64_t>(1, std::llround(*answer->prediction.iteration_ms * 1e6)));
  });
}

}  // namespace

void add_lab_schedule(CLI::App& app, Run& chosen) { add_schedule_asking(oracle_of, app, chosen); }

}  // namespace forerun::cli
