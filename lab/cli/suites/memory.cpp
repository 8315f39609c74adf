// The suite memory: predicted peaks of memory against measured ones, with what others do beside ours.
#include "base/output_file.h"
#include "cli/command_work.h"
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/memory_suite.h"

namespace forerun::cli {
namespace {

struct MemoryCall {
  MemorySuiteOptions request;
  std::string write_intervals;
  SuiteForm form;
};

int evaluate_memory_suite(const MemoryCall& options) {
  const auto accuracy = evaluate_memory(options.request, CommandWork().control());
  if (const int code = print_answer(accuracy, options.form); code != kDone) return code;
  if (options.write_intervals.empty()) return kDone;
  const Status written = write_whole_file(options.write_intervals, to_json(accuracy->intervals, accuracy->data));
  return written ? kDone : fail(written.error());
}

Run add_memory_suite(CLI::App& app) {
  auto options = std::make_shared<MemoryCall>();
  options->request.problem = tell_problem;
  app.add_option("--data", options->request.records, "Record files or folders, in place of data/h200");
  app.add_option("--write-intervals", options->write_intervals,
                 "Write the ranges that predictions show to a file (data/memory/intervals.json)");
  add_form(app, options->form);
  return [options] { return evaluate_memory_suite(*options); };
}

}  // namespace

Suite memory_suite() {
  return {.name = "memory",
          .summary = "Peaks of memory of measured runs, with what others do beside ours",
          .add = add_memory_suite,
          .examples = {
              {"forerun eval --suite memory --write-intervals data/memory/intervals.json", "measure the ranges anew"}}};
}

}  // namespace forerun::cli
