// The suite llm-foundry: MPT models with FSDP on A100 and H100, as LLM Foundry published their throughputs.
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/scale_suite.h"

namespace forerun::cli {
namespace {

struct LlmFoundryOptions {
  std::string table;
  SuiteForm form;
};

Run add_llm_foundry(CLI::App& app) {
  auto options = std::make_shared<LlmFoundryOptions>();
  app.add_option("--data", options->table,
                 "CSV file of throughputs, in place of the data set llm_foundry/benchmark.csv");
  add_form(app, options->form);
  return [options] { return print_answer(evaluate_foundry(options->table), options->form); };
}

}  // namespace

Suite llm_foundry_suite() {
  return {.name = "llm-foundry",
          .summary = "MPT models with FSDP on A100 and H100, as LLM Foundry published them; nothing is fitted to them",
          .add = add_llm_foundry,
          .examples = {{"forerun eval --suite llm-foundry --data benchmark.csv", "another copy of the table"}}};
}

}  // namespace forerun::cli
