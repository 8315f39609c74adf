// forerun memory replay: recorded allocator traces through the simulated allocator.
#include <fmt/format.h>

#include "api/data.h"
#include "api/memory_replay.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "cli/html_option.h"
#include "report/memory_replay.h"

namespace forerun::cli {
namespace {

struct MemoryReplayOptions {
  std::vector<std::string> paths;
  std::string settings;
  WorkLimits limits;
  HtmlOption html;
  bool json = false;
};

int replay(const MemoryReplayOptions& options) {
  const auto settings = parse_allocator_settings(options.settings);
  if (!settings) return fail(settings.error());
  const auto files = record_files(options.paths);
  if (!files) return fail(files.error());
  bool broken = false;
  std::vector<MemoryReplayRow> rows;
  const Status status = replay_memory(*files, *settings,
                                      {.row =
                                           [&](const MemoryReplayRow& row) {
                                             if (rows.empty() && !options.json) fmt::print("{}\n", replay_heading());
                                             fmt::print("{}\n", options.json ? to_json(row) : to_text(row));
                                             rows.push_back(row);
                                           },
                                       .problem =
                                           [&](const DataProblem& problem) {
                                             broken = broken || problem.kind == DataProblem::Kind::broken;
                                             fmt::print(stderr, "forerun: {}\n", problem.error().message());
                                           }},
                                      CommandWork(options.limits, CommandWork::Answer::as_it_comes).control());
  if (!status.ok()) return fail(status.error());
  if (rows.empty()) return fail(nothing_in(*files, "allocator traces of measured runs"));
  if (options.html.asked()) {
    std::string page;
    for (const MemoryReplayRow& row : rows) page += to_json(row) + "\n";
    if (const Status written = write_html(options.html, page + to_json(rows)); !written.ok())
      return fail(written.error());
  }
  fmt::print("{}{}", options.json ? "" : "\n", options.json ? to_json(rows) + "\n" : to_text(rows));
  return broken ? kInputAtFault : kDone;
}

}  // namespace

void add_memory(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<MemoryReplayOptions>();
  CLI::App* memory = app.add_subcommand("memory", "The simulated allocator: replay of recorded runs");
  memory->require_subcommand(1);
  CLI::App* verb = memory->add_subcommand("replay", "Replay recorded allocator traces; how exact are the peaks?");
  verb->add_option("PATH", options->paths, "Record files (.jsonl, .gz, .zst), or folders of them")->required();
  verb->add_option("--allocator", options->settings,
                   "What PYTORCH_CUDA_ALLOC_CONF says, as expandable_segments:True,max_split_size_mb:128");
  verb->add_flag("--json", options->json, "One JSON object a run, and one with the totals");
  add_html_option(*verb, options->html);
  add_work_limits(*verb, options->limits);
  verb->footer(
      "Takes the sizes, streams and order of requests from the trace, and simulates which blocks they get.\n"
      "misplaced: allocations at another address than the recorded one; run/1 records have no addresses.");
  verb->callback([options, &chosen] { chosen = [options] { return replay(*options); }; });
}

}  // namespace forerun::cli
