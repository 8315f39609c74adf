// forerun replay: traces simulated unchanged, measured against simulated iteration time.
#include <fmt/format.h>

#include "api/replay.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "report/replay.h"

namespace forerun::cli {
namespace {

struct ReplayCommandOptions {
  std::vector<std::string> paths;
  ReplayOptions replay;
  WorkLimits limits;
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
  if (!options.json && rows.size() > 1) fmt::print("\n{}", to_text(rows));
  return broken ? kInputAtFault : kDone;
}

}  // namespace

void add_replay(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<ReplayCommandOptions>();
  CLI::App* verb = app.add_subcommand("replay", "Simulate profiler traces unchanged: measured and simulated time");
  verb->add_option("PATH", options->paths, "Kineto traces (.json, .gz, .zst), or folders of them")->required();
  verb->add_flag("--separately", options->replay.separately, "Do not replay the ranks of one run together");
  verb->add_flag("--usual", options->replay.usual_lags,
                 "Launches, kernels and syncs take the trace's usual lags instead of their own");
  add_work_limits(*verb, options->limits);
  verb->add_flag("--json", options->json, "One JSON object a trace, or a set of ranks");
  verb->footer(
      "Builds the dependency graph of each trace (order on threads and streams, launches, syncs, events, collectives)\n"
      "and simulates it from durations, gaps and lags alone. A dependency that is missing or wrong shows as an error.\n"
      "With --usual only durations and host gaps are each event's own: how well the trace is understood without the "
      "rest.\n"
      "  forerun replay trace.json.gz\n"
      "  forerun replay ranks/*.json.gz          all ranks of a run together: collectives wait for the last one\n"
      "linked: device work with a launch in the trace. inferred: waits that the file does not tell.\n"
      "Iterations: ProfilerStep marks, else Optimizer.step marks, else ops that repeat, else the whole trace.");
  verb->callback([options, &chosen] { chosen = [options] { return run_replay(*options); }; });
}

}  // namespace forerun::cli
