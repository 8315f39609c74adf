// The suite daydream: what optimizations bring here, beside what Daydream and their own papers published.
#include "cli/command_work.h"
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/daydream_suite.h"

namespace forerun::cli {
namespace {

Run add_daydream(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Print one JSON object");
  return [json] { return print_answer(evaluate_daydream(CommandWork().control()), *json); };
}

}  // namespace

Suite daydream_suite() {
  return {.name = "daydream",
          .summary = "P3, batch norm, vDNN, Gist, DGC and MetaFlow, beside what their papers claim",
          .add = add_daydream,
          .examples = {{"forerun eval --suite daydream", ""}}};
}

}  // namespace forerun::cli
