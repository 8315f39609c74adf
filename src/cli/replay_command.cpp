// forerun replay: traces simulated unchanged, measured against simulated iteration time.
#include <fmt/format.h>

#include "api/replay.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "cli/html_option.h"
#include "report/replay.h"

namespace forerun::cli {
namespace {

struct ReplayCommandOptions {
  std::vector<std::string> paths;
  ReplayOptions replay;
  WorkLimits limits;
  HtmlOption html;
  bool usual = false;  // as it is without it
  bool json = false;
};

int run_replay(const ReplayCommandOptions& options) {
  const auto files = trace_files(options.paths, "replay");
  if (!files) return fail(files.error());
  std::vector<ReplayRow> rows;
  bool broken = false;
  ReplayHandlers handlers;
  handlers.row = [&](const ReplayRow& row) {
    if (rows.empty() && !options.json) fmt::print("{}\n", replay_header());
    fmt::print("{}\n", options.json ? to_json(row) : to_text(row));
    std::fflush(stdout);
    rows.push_back(row);
  };
  handlers.read = [](const Trace& trace) {
    if (trace.counts.repaired == 0 && trace.counts.skipped == 0) return;
    fmt::print(stderr, "forerun: {}: {} events read, {} repaired, {} skipped; {}\n", trace.file, trace.counts.read,
               trace.counts.repaired, trace.counts.skipped, trace.counts.first_problem);
  };
  handlers.problem = [&](const Error& error) {
    broken = true;
    fmt::print(stderr, "forerun: {}\n", error.message());
  };
  const Status status = replay_traces(*files, options.replay, handlers,
                                      CommandWork(options.limits, CommandWork::Answer::as_it_comes).control());
  if (!status.ok()) return fail(status.error());
  if (options.html.asked()) {
    std::string page;
    for (const ReplayRow& row : rows) page += to_json(row) + "\n";
    if (const Status written = write_html(options.html, page); !written.ok()) return fail(written.error());
  }
  if (!options.json) fmt::print("{}", to_text(rows));
  return broken ? kInputAtFault : kDone;
}

}  // namespace

void add_replay(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<ReplayCommandOptions>();
  CLI::App* verb = app.add_subcommand("replay", "Simulate profiler traces unchanged: measured and simulated time");
  verb->add_option("PATH", options->paths, "Kineto traces (.json, .gz, .zst), or folders of them")->required();
  verb->add_flag("--separately", options->replay.separately, "Do not replay the ranks of one run together");
  CLI::Option* own = verb->add_flag("--own-lags", options->replay.own_lags,
                                    "Launches, kernels and syncs take their own measured lags: 0 by construction");
  verb->add_flag("--usual", options->usual, "The trace's usual lags, as without the option")->excludes(own);
  add_work_limits(*verb, options->limits);
  add_html_option(*verb, options->html);
  verb->add_flag("--json", options->json, "One JSON object a trace, or a set of ranks");
  verb->footer(
      "Builds the dependency graph of each trace (order on threads and streams, launches, syncs, events, collectives)\n"
      "and simulates it. Durations and the host's gaps are each event's own; launches, kernels and syncs take the\n"
      "trace's usual lags. The error says how well the trace is understood: it is what a what-if starts from.\n"
      "With --own-lags every start is explained by its own lag, so that an error of 0 is so by construction and only "
      "a\n"
      "dependency that is wrong shows.\n"
      "  forerun replay trace.json.gz\n"
      "  forerun replay ranks/*.json.gz          all ranks of a run together: collectives wait for the last one\n"
      "linked: device work with a launch in the trace. inferred: waits that the file does not tell.\n"
      "Iterations: ProfilerStep marks, else Optimizer.step marks, else ops that repeat, else the whole trace.");
  verb->callback([options, &chosen] { chosen = [options] { return run_replay(*options); }; });
}

}  // namespace forerun::cli
