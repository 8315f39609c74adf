// The suite ddl-benchmark: throughputs of data-parallel training against those that Shi et al. measured in their benchmark of
// distributed deep learning.
#include "cli/command_work.h"
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/ddl_benchmark_suite.h"

namespace forerun::cli {
namespace {

struct DdlBenchmarkOptions {
  std::string table;
  SuiteForm form;
};

int evaluate_ddl_benchmark_suite(const DdlBenchmarkOptions& options) {
  const auto answer = evaluate_ddl_benchmark(options.table, CommandWork().control());
  return print_answer(answer, options.form);
}

Run add_ddl_benchmark(CLI::App& app) {
  auto options = std::make_shared<DdlBenchmarkOptions>();
  app.add_option("--data", options->table, "CSV file of the benchmark, in place of the data set hkbu/throughput.csv");
  add_form(app, options->form);
  return [options] { return evaluate_ddl_benchmark_suite(*options); };
}

}  // namespace

Suite ddl_benchmark_suite() {
  return {.name = "ddl-benchmark",
          .summary = "Data-parallel training on several networks and schedules, as Shi et al. measured it",
          .add = add_ddl_benchmark,
          .examples = {{"forerun eval --suite ddl-benchmark --data throughput.csv", "another copy of the table"}},
          .former_names = {"hkbu"}};
}

}  // namespace forerun::cli
