// The suite whatif: optimizations of traced steps against measured variants of the same steps.
#include "cli/command_work.h"
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/whatif_suite.h"

namespace forerun::cli {
namespace {

struct WhatIfCall {
  WhatIfSuiteOptions request;
  SuiteForm form;
};

Run add_whatif_suite(CLI::App& app) {
  auto options = std::make_shared<WhatIfCall>();
  app.add_option("--data", options->request.folder,
                 "Folder of whatif.jsonl.gz and whatif_traces, in place of data/h200");
  add_form(app, options->form);
  return [options] {
    const auto answer = evaluate_whatif(options->request, CommandWork().control());
    return print_answer(answer, options->form);
  };
}

}  // namespace

Suite whatif_suite() {
  return {.name = "whatif",
          .summary = "Optimizations of traced steps, against measured variants of the same steps",
          .add = add_whatif_suite,
          .examples = {{"forerun eval --suite whatif --json", "a row for each model and variant"}}};
}

}  // namespace forerun::cli
