// The suite testbed: simulated bursts and idles of distributed training against what forerun.testbed measured.
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/testbed_suite.h"

namespace forerun::cli {
namespace {

struct TestbedSuiteOptions {
  TestbedRequest request;
  SuiteForm form;
};

int evaluate_testbed_suite(const TestbedSuiteOptions& options) {
  const auto cost_models = load_cost_models();
  if (!cost_models) return fail(cost_models.error());
  return print_answer(evaluate_testbed(options.request, *cost_models), options.form);
}

Run add_testbed_suite(CLI::App& app) {
  auto options = std::make_shared<TestbedSuiteOptions>();
  options->request.bad_record = tell_error;
  app.add_option("--data", options->request.records, "Record files or folders, in place of data/resources");
  add_form(app, options->form);
  return [options] { return evaluate_testbed_suite(*options); };
}

}  // namespace

Suite testbed_suite() {
  return {.name = "testbed",
          .summary = "Bursts and idles of GPU and network in distributed training, simulated",
          .add = add_testbed_suite,
          .examples = {{"forerun eval --suite testbed --data testbed.jsonl.zst", "other records"}}};
}

}  // namespace forerun::cli
