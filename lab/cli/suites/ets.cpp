// The suites ets-t4 and ets-2080ti: learned predictors on the op-level traces that the authors of ETS published.
#include "cli/command_work.h"
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/learned_suites.h"

namespace forerun::cli {
namespace {

struct EtsSuiteOptions {
  LearnedSuiteOptions data;
  SuiteForm form;
};

Suite ets_suite(const std::string& name, const std::string& summary, std::vector<Example> examples) {
  const auto add = [name](CLI::App& app) -> Run {
    auto options = std::make_shared<EtsSuiteOptions>();
    options->data.problem = tell_problem;
    app.add_option("--weights", options->data.weights,
                   "Folders that `forerun train --out` wrote; without it all of data/weights/" + name);
    app.add_option("--traces", options->data.traces, "Folder of the ETS authors' traces");
    app.add_option("--cache", options->data.caches, "A data set that `forerun train --write-cache` wrote");
    add_form(app, options->form);
    return [options, name] {
      const CommandWork work;
      LearnedSuiteOptions data = options->data;
      data.control = work.control();
      return print_answer(evaluate_learned(name, data), options->form);
    };
  };
  return {.name = name, .summary = summary, .add = add, .examples = std::move(examples)};
}

}  // namespace

Suite ets_t4_suite() {
  return ets_suite("ets-t4", "Iteration time by op-level traces of a T4, which the authors of ETS published",
                   {{"forerun eval --suite ets-t4 --weights data/weights/ets-t4/blend", "one predictor"}});
}

Suite ets_2080ti_suite() {
  return ets_suite(
      "ets-2080ti",
      "Iteration time by op-level traces of an RTX 2080 Ti; those to test on are not public, so name a --cache",
      {{"forerun eval --suite ets-2080ti --cache ets_2080ti.bin", "a data set with a test split"}});
}

}  // namespace forerun::cli
