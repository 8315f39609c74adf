// The suite published-runs: runs on many GPUs that others published, asked for as `forerun scale` would.
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/run_suite.h"

namespace forerun::cli {
namespace {

struct PublishedRunsOptions {
  RunSuiteOptions suite;
  SuiteForm form;
};

int run_published(const PublishedRunsOptions& options) {
  const auto cost_models = load_cost_models();
  if (!cost_models) return fail(cost_models.error());
  return print_answer(evaluate_runs(options.suite, *cost_models), options.form);
}

Run add_published_runs(CLI::App& app) {
  auto options = std::make_shared<PublishedRunsOptions>();
  app.add_option("--data", options->suite.runs, "File of runs, in place of data/scale/published_runs.json");
  app.add_option("--source", options->suite.source, "Runs of this source alone, such as \"LLM Foundry\"");
  app.add_flag("--each", options->suite.each, "A line for each run too");
  app.add_flag("--search", options->suite.search, "Hold `scale --search` to ten of the runs");
  add_form(app, options->form);
  return [options] { return run_published(*options); };
}

}  // namespace

Suite published_runs_suite() {
  return {
      .name = "published-runs",
      .summary = "runs on 8 to 3,360 GPUs that others published; constants are fitted to some of the sources at most",
      .add = add_published_runs,
      .examples = {{"forerun eval --suite published-runs --each", "every run"},
                   {"forerun eval --suite published-runs --search", "and what --search makes of ten of them"}}};
}

}  // namespace forerun::cli
