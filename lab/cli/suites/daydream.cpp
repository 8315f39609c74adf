// The suite daydream: what optimizations bring here, beside what Daydream and their own papers published.
#include "cli/command_work.h"
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/daydream_suite.h"

namespace forerun::cli {
namespace {

Run add_daydream(CLI::App& app) {
  auto form = std::make_shared<SuiteForm>();
  add_form(app, *form);
  return [form] { return print_answer(evaluate_daydream(CommandWork().control()), *form); };
}

}  // namespace

Suite daydream_suite() {
  return {.name = "daydream",
          .summary = "P3, batch norm, vDNN, Gist, DGC and MetaFlow, beside what their papers claim",
          .add = add_daydream,
          .examples = {{"forerun eval --suite daydream", ""}}};
}

}  // namespace forerun::cli
