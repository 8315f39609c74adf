// The suite calibration: what machine.json files of an H200 bring where it is taken for a GPU that nobody measured, and readings of
// its hosts.
#include "cli/command_work.h"
#include "lab/cli/answer.h"
#include "lab/cli/measured_files.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/calibration_suite.h"

namespace forerun::cli {
namespace {

struct CalibrationCall {
  CalibrationSuiteOptions suite;
  std::vector<std::string> data;
  SuiteForm form;
};

int evaluate_calibration_files(const CalibrationCall& call) {
  const auto files = measured_files(call.data);
  if (!files) return fail(files.error());
  CalibrationSuiteOptions suite = call.suite;
  suite.records = *files;
  suite.problem = tell_problem;
  return print_answer(evaluate_calibration(suite, CommandWork().control()), call.form);
}

Run add_calibration(CLI::App& app) {
  auto call = std::make_shared<CalibrationCall>();
  app.add_option("--machine", call->suite.machines,
                 "Files that `python -m forerun.calibrate` wrote on an H200, those of fewer minutes first");
  app.add_option("--data", call->data, "Record files or folders, in place of data/h200");
  app.add_flag("--keep", call->suite.keep, "Write the ranges of answers to data/cost/calibrated.json");
  add_form(app, call->form);
  return [call] { return evaluate_calibration_files(*call); };
}

}  // namespace

Suite calibration_suite() {
  return {
      .name = "calibration",
      .summary = "An H200 taken for an unknown GPU, before and after minutes of calibration; hosts with and without",
      .add = add_calibration,
      .examples = {{"forerun eval --suite calibration --machine machine-1.json machine-5.json", "files of an H200"}}};
}

}  // namespace forerun::cli
