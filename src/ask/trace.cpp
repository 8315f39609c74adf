// Where the time of profiler traces went: what `trace --json` prints, and all kernels, ops, modules and phases in columns; with
// `compare`, what `trace --compare --json` prints.
#include "api/trace.h"

#include <fmt/format.h>

#include "ask/answers.h"
#include "ask/run_words.h"
#include "report/columns.h"
#include "report/trace_report.h"

namespace forerun::ask {
namespace {

struct UsedRow {
  int64_t rank;
  const UsageRow* usage;
};

// The rows of one kind, of all ranks.
void write_section(JsonWriter& json, const char* name, const TraceAnalysis& analysis,
                   std::vector<UsageRow> Usage::*section) {
  std::vector<UsedRow> rows;
  for (const RankAnalysis& rank : analysis.ranks) {
    for (const UsageRow& row : rank.usage.*section) rows.push_back({rank.rank, &row});
  }
  json.key(name).begin_object();
  column(json, "rank", rows, [](const UsedRow& row) { return row.rank; });
  column(json, "name", rows, [](const UsedRow& row) { return row.usage->name; });
  column(json, "count", rows, [](const UsedRow& row) { return row.usage->count; });
  column(json, "gpu_us", rows, [](const UsedRow& row) { return microseconds(row.usage->gpu); });
  column(json, "host_us", rows, [](const UsedRow& row) { return microseconds(row.usage->host); });
  column(json, "shortest_us", rows, [](const UsedRow& row) { return microseconds(row.usage->shortest); });
  column(json, "longest_us", rows, [](const UsedRow& row) { return microseconds(row.usage->longest); });
  json.end_object();
}

// What has times; an Error where a file has none.
Result<std::vector<TraceFile>> timed_files(const std::vector<std::string>& paths) {
  auto files = trace_files(paths, "trace");
  if (!files) return files;
  const auto executions = are_execution_traces(*files);
  if (!executions) return executions.error();
  if (!*executions) return files;
  return Error{"is an execution trace, which has no times", files->front().path, "`forerun trace` sums it up"};
}

std::string usage_json(const TraceAnalysis& analysis, const TraceReportOptions& lists) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.trace.usage/1")
      .field("warnings", warnings_of(analysis))
      .key("trace")
      .raw(to_json(analysis, lists));
  write_section(json, "kernels", analysis, &Usage::kernels);
  write_section(json, "ops", analysis, &Usage::ops);
  write_section(json, "modules", analysis, &Usage::modules);
  write_section(json, "phases", analysis, &Usage::phases);
  return json.end_object().take();
}

}  // namespace

Result<std::string> answer_trace(Question& question, const Asking& asking) {
  const auto paths = question.texts("files"), others = question.texts("compare");
  if (paths.empty()) question.refuse("files", "there is no trace", "name one, or one for each rank");
  TraceReportOptions lists;
  lists.top = static_cast<size_t>(question.whole("top", 0, 1'000'000).value_or(10));
  AnalysisOptions options;
  options.critical_path = !question.flag("no_path") && others.empty();
  options.breakdown.like_hta = question.flag("like_hta");
  options.breakdown.drop_last_step = question.flag("drop_last_step");
  const auto gap = question.number("kernel_gap_us", 0, 1e9);
  if (options.breakdown.like_hta && (gap || options.breakdown.drop_last_step)) {
    question.refuse("like_hta", "says itself which pauses and iterations count", "leave the others out");
  }
  options.breakdown.kernel_gap = nanoseconds_from_us(gap.value_or(5.0));
  const bool partial = question.flag("partial");
  const WorkControl control = read_limits(question, asking.control);
  if (const Status status = question.status(); !status.ok()) return status.error();
  std::vector<std::vector<TraceFile>> groups;
  for (const auto* named : {&paths, &others}) {
    if (named->empty()) continue;
    auto files = timed_files(*named);
    if (!files) return files.error();
    groups.push_back(std::move(*files));
  }
  KeptTraces for_now;
  const auto traces = (asking.traces == nullptr ? for_now : *asking.traces).read(groups, partial, control);
  if (!traces) return traces.error();
  const TraceAnalysis analysis = analyze(traces->front(), options);
  if (others.empty()) return usage_json(analysis, lists);
  const TraceAnalysis other = analyze(traces->back(), options);
  return to_json(analysis, other, changes_between(analysis.ranks.front(), other.ranks.front()), lists);
}

}  // namespace forerun::ask
