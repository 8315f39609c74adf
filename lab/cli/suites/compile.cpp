// The suite compile: predicted iterations of compiled models against measured ones.
#include "cli/command_work.h"
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/compile_suite.h"

namespace forerun::cli {
namespace {

struct CompileCall {
  CompileSuiteOptions request;
  SuiteForm form;
};

Run add_compile_suite(CLI::App& app) {
  auto options = std::make_shared<CompileCall>();
  app.add_option("--data", options->request.folder,
                 "Folder with measured.jsonl and captures.jsonl.zst, in place of data/compile");
  add_form(app, options->form);
  return [options] { return print_answer(evaluate_compile(options->request, CommandWork().control()), options->form); };
}

}  // namespace

Suite compile_suite() {
  return {.name = "compile",
          .summary = "Iterations of models under torch.compile, by families fitted to and kept aside",
          .add = add_compile_suite,
          .examples = {{"forerun eval --suite compile --data data/compile", "the table of docs/compile.md"}}};
}

}  // namespace forerun::cli
