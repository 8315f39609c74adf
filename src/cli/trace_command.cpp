// forerun trace: where the time of profiler traces went.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "api/trace.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "cli/html_option.h"
#include "report/execution_trace_report.h"
#include "report/trace_chrome.h"
#include "report/trace_report.h"
#include "report/trace_timeline.h"

namespace forerun::cli {
namespace {

struct TraceOptions {
  std::vector<std::string> paths, compare;
  std::string chrome;
  TraceReportOptions report;
  AnalysisOptions analysis;
  double kernel_gap_us = 5.0;
  WorkLimits limits;
  HtmlOption html;
  bool hta = false, no_path = false, partial = false;
  bool json = false, csv = false;
};

Result<std::vector<Trace>> read(const std::vector<TraceFile>& files, const TraceOptions& options) {
  return read_traces(files, options.partial, CommandWork(options.limits).control());
}

void warn(const TraceAnalysis& analysis) {
  for (const std::string& warning : warnings_of(analysis)) fmt::print(stderr, "forerun: {}\n", warning);
}

int write_chrome(const std::vector<Trace>& traces, const TraceAnalysis& analysis, const TraceOptions& options) {
  const auto written = write_chrome_trace(traces, analysis, options.analysis.breakdown, options.chrome);
  if (!written) return fail(written.error());
  fmt::print(stderr, "forerun: wrote {}: {} slices on {} tracks, {} arrows{}; open it in ui.perfetto.dev\n",
             options.chrome, written->slices, written->tracks, written->arrows,
             written->left_out == 0
                 ? ""
                 : fmt::format(" ({} slices overlap too many others and are left out)", written->left_out));
  return kDone;
}

// A page cannot ask for more detail as one zooms in: it has more of it than a screen has pixels.
constexpr int64_t kPixelsOfPage = 3000;
constexpr uint32_t kDeepestOfPage = 5;

// A page has room for longer lists.
TraceReportOptions page_lists(const TraceOptions& options) {
  TraceReportOptions lists = options.report;
  lists.top = std::max<size_t>(lists.top, 500);
  return lists;
}

int compare(const TraceAnalysis& analysis, const TraceOptions& options) {
  const auto files = trace_files(options.compare, "replay");  // what has a timeline
  if (!files) return fail(files.error());
  auto others = read(*files, options);
  if (!others) return fail(others.error());
  AnalysisOptions plain = options.analysis;
  plain.critical_path = false;
  const TraceAnalysis other = analyze(*others, plain);
  warn(other);
  if (analysis.ranks.empty() || other.ranks.empty()) return kDone;
  const TraceChanges changes = changes_between(analysis.ranks.front(), other.ranks.front());
  if (options.html.asked()) {
    if (const Status status = write_html(options.html, to_json(analysis, other, changes, page_lists(options)));
        !status.ok())
      return fail(status.error());
  }
  if (options.json) {
    fmt::print("{}\n", to_json(analysis, other, changes, options.report));
  } else if (options.csv) {
    fmt::print("{}", to_csv(changes));
  } else {
    TraceReportOptions few = options.report;
    few.top = 0;
    fmt::print("before: {}\nafter: {}{}", to_text(analysis, few), to_text(other, few),
               to_text(changes, options.report));
  }
  return kDone;
}

// What ran, without when: nodes, dependencies and messages.
int summarize(const std::vector<TraceFile>& files, const TraceOptions& options) {
  if (!options.compare.empty() || !options.chrome.empty()) {
    return fail({"an execution trace has no timeline to compare or draw", files.front().path,
                 "give --compare and --chrome profiler traces"});
  }
  std::string page;
  for (const TraceFile& file : files) {
    const auto trace = read_execution_trace(file.path, options.partial);
    if (!trace) return fail(trace.error());
    const ExecutionSummary summary = summary_of(*trace);
    if (options.html.asked()) page += to_json(summary, page_lists(options).top) + "\n";
    if (options.csv) {
      fmt::print("{}", to_csv(*trace));
      continue;
    }
    fmt::print("{}\n", options.json ? to_json(summary, options.report.top) : to_text(summary, options.report.top));
  }
  if (options.html.asked()) {
    if (const Status status = write_html(options.html, page); !status.ok()) return fail(status.error());
  }
  return kDone;
}

int run(TraceOptions options) {
  options.analysis.breakdown.kernel_gap = nanoseconds_from_us(options.kernel_gap_us);
  options.analysis.critical_path = !options.no_path;
  options.analysis.breakdown.like_hta = options.hta;
  const bool comparing = !options.compare.empty();
  if (comparing && options.chrome.empty()) options.analysis.critical_path = false;
  const auto files = trace_files(options.paths, "trace");
  if (!files) return fail(files.error());
  const auto executions = are_execution_traces(*files);
  if (!executions) return fail(executions.error());
  if (*executions) return summarize(*files, options);
  const auto traces = read(*files, options);
  if (!traces) return fail(traces.error());
  const TraceAnalysis analysis = analyze(*traces, options.analysis);
  warn(analysis);
  if (!options.chrome.empty()) {
    if (const int code = write_chrome(*traces, analysis, options); code != kDone) return code;
  }
  if (comparing) return compare(analysis, options);
  if (options.html.asked()) {
    PageSeries series;
    if (!traces->empty()) {
      const Trace& first = traces->front();
      const TimelineRows rows(first, kDeepestOfPage);
      series.emplace_back("timeline", timeline_json(first, rows, {0, rows.length(), kPixelsOfPage}));
    }
    const Status status = write_html(options.html, to_json(analysis, page_lists(options)), series);
    if (!status.ok()) return fail(status.error());
  }
  if (options.json) {
    fmt::print("{}\n", to_json(analysis, options.report));
  } else {
    fmt::print("{}", options.csv ? to_csv(analysis) : to_text(analysis, options.report));
  }
  return kDone;
}

}  // namespace

void add_trace(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* verb = app.add_subcommand("trace", "Where the time of a profiler trace went, and what would bring it back");
  verb->add_option(
          "FILE", options->paths,
          "PyTorch profiler traces (.json, .gz, .zst), one per rank, or folders of them; or execution traces,\n"
          "PyTorch's or Chakra's")
      ->required();
  verb->add_option("--compare", options->compare, "Another trace (or its ranks): what changed from FILE to it");
  verb->add_option("--top", options->report.top, "Rows of each list")->default_val(10);
  add_html_option(*verb, options->html);
  CLI::Option* json = verb->add_flag("--json", options->json, "One JSON object");
  verb->add_flag("--csv", options->csv, "Comma-separated: every kernel, op, module and phase")->excludes(json);
  verb->add_option("--chrome", options->chrome,
                   "Write an annotated trace for Perfetto: critical path, idle time and its causes, queues");
  verb->add_option("--kernel-gap-us", options->kernel_gap_us,
                   "A pause up to this between work launched in time counts as kernel wait")
      ->default_val(5.0)
      ->check(CLI::Range(0.0, 1e9));
  verb->add_flag("--drop-last-step", options->analysis.breakdown.drop_last_step,
                 "Leave out GPU work launched in the last iteration");
  verb->add_flag(
          "--like-hta", options->hta,
          "Count time and idle time as Holistic Trace Analysis 0.5.0 does: without the last iteration, in whole\n"
          "microseconds, pauses of less than 30 us as kernel wait")
      ->excludes("--kernel-gap-us")
      ->excludes("--drop-last-step");
  verb->add_flag("--partial", options->partial,
                 "Of a file that is cut short, take what came before the cut; without it such a file is refused");
  add_work_limits(*verb, options->limits);
  verb->add_flag("--no-path", options->no_path, "Skip the critical path");
  verb->footer(
      "Examples:\n"
      "  forerun trace run.pt.trace.json.gz                  time, idle causes, kernels, critical path\n"
      "  forerun trace rank*.json.gz                         several ranks: clock offsets and stragglers\n"
      "  forerun trace before.json --compare after.json      what changed\n"
      "  forerun trace run.json --chrome annotated.json.gz   then open it in ui.perfetto.dev\n"
      "  forerun trace rank0.et                              an execution trace: nodes, dependencies, messages\n"
      "What the figures mean: docs/traces.md.");
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace forerun::cli
