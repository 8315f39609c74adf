// forerun check: guards on predictions, for any CI.
#include <fmt/core.h>

#include "ask/check.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "cli/html_option.h"
#include "cli/standard_streams.h"
#include "report/check.h"

namespace forerun::cli {
namespace {

struct CheckOptions {
  ask::CheckRequest request;
  WorkLimits limits;
  HtmlOption html;
  bool json = false;
  bool markdown = false;
};

int run_check(const CheckOptions& options) {
  ask::Knowledge knowledge;
  const CommandWork work(options.limits);
  const auto answer = ask::check(options.request, {.knowledge = knowledge, .control = work.control()});
  if (!answer) return fail(answer.error());
  if (options.html.asked()) {
    if (const Status status = write_html(options.html, to_json(*answer)); !status.ok()) return fail(status.error());
  }
  if (options.json) {
    fmt::print("{}\n", to_json(*answer));
  } else {
    fmt::print("{}", options.markdown ? to_markdown(*answer) : to_text(*answer, text_style(false)));
  }
  return answer->passes() ? kDone : kGuardFails;
}

}  // namespace

void add_check(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* verb =
      app.add_subcommand("check", "Hold predictions to limits and to a baseline, for CI: no GPU, no noise");
  verb->add_option("FILE", options->request.file,
                   "The guards: each a model and what must hold of it; default forerun.toml");
  verb->add_option("--lock", options->request.lock, "The baselines; default forerun.lock beside FILE");
  verb->add_flag("--update", options->request.update,
                 "Keep the figures of now as the baseline; limits that need none are judged all the same");
  add_work_limits(*verb, options->limits);
  add_html_option(*verb, options->html);
  CLI::Option* json = verb->add_flag("--json", options->json, "One JSON object on standard output");
  verb->add_flag("--markdown", options->markdown, "The table in Markdown, for a comment in a review")->excludes(json);
  verb->footer(
      "A file of guards:\n"
      "  [guard.resnet50]\n"
      "  model = \"resnet50\"               # and words of `predict`: gpu, batch, precision, ...\n"
      "  gpu = [\"a100\", \"l4\"]             # several make a guard of each\n"
      "  fits = true                      # surely, its range included\n"
      "  slower_than_baseline = \"10%\"     # more than that fails; so memory_above_baseline\n"
      "  iteration_ms_at_most = 150       # so reserved_gib_at_most\n"
      "Examples:\n"
      "  forerun check --update           writes forerun.lock: commit it\n"
      "  forerun check                    in CI\n"
      "Exit code 3: a guard fails.");
  verb->callback([options, &chosen] { chosen = [options] { return run_check(*options); }; });
}

}  // namespace forerun::cli
