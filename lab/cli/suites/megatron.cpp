// The suite megatron: GPT models on 32 to 3,072 A100, as the paper on Megatron-LM published their throughputs.
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/scale_suite.h"

namespace forerun::cli {
namespace {

Run add_megatron(CLI::App& app) {
  auto form = std::make_shared<SuiteForm>();
  add_form(app, *form);
  return [form] { return print_answer(evaluate_megatron({}), *form); };
}

}  // namespace

Suite megatron_suite() {
  return {.name = "megatron",
          .summary = "Megatron on 32 to 3,072 A100, as published; nothing is fitted to it",
          .add = add_megatron,
          .examples = {{"forerun eval --suite megatron", ""}}};
}

}  // namespace forerun::cli
