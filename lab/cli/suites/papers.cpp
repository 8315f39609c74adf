// The suite papers: the tables and ablations of ETS's and DNNPerf's papers, ours beside what they published.
#include "cli/command_work.h"
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/learned_suites.h"

namespace forerun::cli {
namespace {

struct PapersSuiteOptions {
  PapersOptions data;
  SuiteForm form;
};

int print_papers(const PapersSuiteOptions& options) {
  const CommandWork work;
  PapersOptions data = options.data;
  data.control = work.control();
  const auto results = evaluate_papers(data);
  if (!results) return fail(results.error());
  std::string page;
  for (const SuiteResult& result : *results) {
    print_answer(Result<SuiteResult>(result), options.form.json);
    page += to_json(result) + "\n";
  }
  if (options.form.page.path.empty()) return kDone;
  const Status written = write_html(options.form.page, page);
  return written.ok() ? kDone : fail(written.error());
}

Run add_papers(CLI::App& app) {
  auto options = std::make_shared<PapersSuiteOptions>();
  options->data.problem = tell_problem;
  app.add_option("--traces", options->data.traces, "Folder of the ETS authors' traces");
  app.add_option("--data", options->data.records, "Record files or folders, in place of data/h200");
  add_form(app, options->form, "Print one JSON object for each of ets-t4 and h200");
  return [options] { return print_papers(*options); };
}

}  // namespace

Suite papers_suite() {
  return {.name = "papers",
          .summary = "The tables and ablations of the papers on ETS and DNNPerf, ours beside theirs",
          .add = add_papers,
          .examples = {{"forerun eval --suite papers", "all that is trained, on ets-t4 and h200"}},
          .former_names = {"seeds"}};
}

}  // namespace forerun::cli
