// The suite h200: iteration time and memory of `forerun predict` and of learned predictors on runs measured on an H200, of
// model families that nothing was trained on; or, left out in turn, of the families that `forerun predict` was trained on.
#include "cli/command_work.h"
#include "lab/calibrate/left_out_suite.h"
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/learned_suites.h"
#include "records/data_files.h"

namespace forerun::cli {
namespace {

struct H200Options {
  LearnedSuiteOptions data;
  std::string division = to_text(learn::Division{});
  bool leave_one_out = false;
  int folds = 0;
  SuiteForm form;
};

int evaluate_families_left_out(const H200Options& options) {
  const auto paths = suite_records(options.data);
  if (!paths) return fail(paths.error());
  const auto files = record_files(*paths);
  if (!files) return fail(files.error());
  const CrossValidation request{.files = *files, .folds = options.folds, .growth = {}, .problem = tell_problem};
  const auto answer = evaluate_left_out(request, CommandWork().control());
  return print_answer(answer, options.form);
}

int evaluate_h200(const H200Options& options) {
  if (options.leave_one_out) return evaluate_families_left_out(options);
  const CommandWork work;
  LearnedSuiteOptions data = options.data;
  const auto division = learn::parse_division(options.division);
  if (!division) return fail(division.error());
  data.division = *division;
  if (division->random && data.iterations_alone) {
    return fail({"`forerun predict` is not judged on a random split", "--iterations-alone", "leave one of them out"});
  }
  data.control = work.control();
  return print_answer(evaluate_learned("h200", data), options.form);
}

Run add_h200(CLI::App& app) {
  auto options = std::make_shared<H200Options>();
  options->data.problem = tell_problem;
  CLI::Option* weights =
      app.add_option("--weights", options->data.weights,
                     "Folders that `forerun train --out` wrote; without it all of data/weights/h200");
  CLI::Option* data = app.add_option("--data", options->data.records, "Record files or folders, in place of data/h200");
  CLI::Option* cache =
      app.add_option("--cache", options->data.caches, "A data set that `forerun train --write-cache` wrote");
  CLI::Option* leave = app.add_flag("--leave-one-out", options->leave_one_out,
                                    "Judge `forerun predict` on the training families, each predicted without it")
                           ->excludes(weights)
                           ->excludes(cache);
  app.add_option("--folds", options->folds, "Leave families out in so many groups, which is faster")
      ->check(CLI::Range(2, 99))
      ->needs(leave);
  app.add_option(
         "--split", options->division,
         "families (default), or random: models like those trained on, a fifth of the configurations of all families; "
         "random:SEED judges others. Weights of data/weights/h200-random")
      ->excludes(leave);
  CLI::Option* alone =
      app.add_flag("--iterations-alone", options->data.iterations_alone,
                   "Grow the trees of `forerun predict` from iterations alone, without op samples, and judge "
                   "those too (a minute); without it the row is the kept one")
          ->excludes(leave)
          ->excludes(cache);
  app.add_flag("--keep", options->data.keep_iterations_alone, "Keep that row for later calls, in data/evaluations")
      ->needs(alone)
      ->excludes(data);
  add_form(app, options->form);
  return [options] { return evaluate_h200(*options); };
}

}  // namespace

Suite h200_suite() {
  return {.name = "h200",
          .summary = "Iteration time and memory on an H200, `forerun predict` and learned predictors (the default)",
          .add = add_h200,
          .examples = {{"forerun eval --suite h200 --data more.jsonl.gz", "other records"},
                       {"forerun eval --suite h200 --weights data/weights/h200/gbdt --json", "one predictor"},
                       {"forerun eval --suite h200 --split random", "seen models, as in DNNPerf's first question"},
                       {"forerun eval --suite h200 --iterations-alone", "Forerun without its op samples beside it"},
                       {"forerun eval --leave-one-out --folds 6", "the training families, left out in six groups"}}};
}

}  // namespace forerun::cli
