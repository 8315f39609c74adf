#include "report/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/json_writer.h"
#include "report/table.h"

namespace forerun {
namespace {

using cluster::Metrics;

// The figures of Metrics in the order they are reported; counts are numbers too.
struct Figure {
  const char* name;
  double (*of)(const Metrics&);
  bool count;
};

#define FORERUN_FIGURE(field, count)                                             \
  Figure {                                                                       \
#field, [](const Metrics& m) { return static_cast<double>(m.field); }, count \
  }
constexpr Figure kFigures[] = {
    FORERUN_FIGURE(jobs, true),
    FORERUN_FIGURE(mean_jct, false),
    FORERUN_FIGURE(median_jct, false),
    FORERUN_FIGURE(p95_jct, false),
    FORERUN_FIGURE(p99_jct, false),
    FORERUN_FIGURE(mean_wait, false),
    FORERUN_FIGURE(median_wait, false),
    FORERUN_FIGURE(p95_wait, false),
    FORERUN_FIGURE(p99_wait, false),
    FORERUN_FIGURE(makespan, false),
    FORERUN_FIGURE(with_deadline, true),
    FORERUN_FIGURE(late, true),
    FORERUN_FIGURE(total_tardiness, false),
    FORERUN_FIGURE(mean_tardiness, false),
    FORERUN_FIGURE(mean_slowdown, false),
    FORERUN_FIGURE(p99_slowdown, false),
    FORERUN_FIGURE(mean_fairness, false),
    FORERUN_FIGURE(worst_fairness, false),
    FORERUN_FIGURE(utilisation, false),
    FORERUN_FIGURE(fragmentation, false),
    FORERUN_FIGURE(preemptions, true),
    FORERUN_FIGURE(failures, true),
    FORERUN_FIGURE(unfinished, true),
};
#undef FORERUN_FIGURE

// "1 row", "2 rows".
std::string counted_text(int64_t count, const char* what) {
  return fmt::format("{} {}{}", grouped(count), what, count == 1 ? "" : "s");
}

constexpr double kLongSeconds = 1e4;  // from which on hours and days are easier to read

std::string seconds_text(double value) {
  if (value < kLongSeconds) return fmt::format("{:.1f} s", value);
  if (value < 2e5) return fmt::format("{:.2f} h", value / 3600);
  return fmt::format("{:.2f} d", value / 86400);
}

std::string jct_text(const PolicyOutcome& outcome) {
  std::string text = fmt::format("{:.1f} s", outcome.mean_of(kFigures[1].of));
  if (outcome.runs.size() > 1) text += fmt::format(" +- {:.1f}", outcome.jct_half_width());
  return text;
}

std::string single_text(const PolicyOutcome& outcome) {
  const Metrics m = outcome.mean();
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("  {:<22}{}\n", name, value);
  };
  line("completion time", fmt::format("mean {}, median {}, p95 {}, p99 {}", jct_text(outcome),
                                      seconds_text(m.median_jct), seconds_text(m.p95_jct), seconds_text(m.p99_jct)));
  line("waiting", fmt::format("mean {:.1f} s, median {}, p95 {}, p99 {}", m.mean_wait, seconds_text(m.median_wait),
                              seconds_text(m.p95_wait), seconds_text(m.p99_wait)));
  line("makespan", m.makespan < kLongSeconds ? seconds_text(m.makespan)
                                             : fmt::format("{:.0f} s ({})", m.makespan, seconds_text(m.makespan)));
  if (m.with_deadline > 0) {
    line("deadlines",
         fmt::format("{} of {} jobs late, tardiness {} in all, {} on average", grouped(m.late),
                     grouped(m.with_deadline), seconds_text(m.total_tardiness), seconds_text(m.mean_tardiness)));
  }
  line("slowdown", fmt::format("mean {:.2f}, p99 {:.1f}", m.mean_slowdown, m.p99_slowdown));
  line("finish-time fairness",
       fmt::format("mean {:.2f}, worst {:.1f} (1: as fast as an equal share)", m.mean_fairness, m.worst_fairness));
  line("GPUs", fmt::format("{} used, {} free while jobs waited", percent(m.utilisation), percent(m.fragmentation)));
  if (m.preemptions > 0) line("preemptions", grouped(m.preemptions));
  if (m.failures > 0) line("failures", grouped(m.failures));
  if (m.unfinished > 0) line("never finished", counted_text(m.unfinished, "job"));
  if (const auto loss = outcome.loss()) line("lost by prediction", percent(*loss) + " of the mean completion time");
  return text;
}

std::string compared_text(const ScheduleReport& report) {
  Table table({"policy", "mean JCT", "median", "p99", "mean wait", "makespan", "late", "tardiness", "used", "lost"});
  for (const PolicyOutcome& outcome : report.outcomes) {
    const Metrics m = outcome.mean();
    const auto loss = outcome.loss();
    table.add({outcome.policy, jct_text(outcome), seconds_text(m.median_jct), seconds_text(m.p99_jct),
               fmt::format("{:.1f} s", m.mean_wait), fmt::format("{:.0f} s", m.makespan), grouped(m.late),
               seconds_text(m.total_tardiness), percent(m.utilisation), loss ? percent(*loss) : "-"});
  }
  return table.text();
}

constexpr size_t kMostRows = 30;  // of a breakdown, as text

// One table for all policies: their rows stand one under the other, for one user, group or size after the next.
std::string breakdown_text(const ScheduleReport& report, size_t which) {
  const char* by = name_of(report.outcomes.front().breakdowns[which].by);
  Table table({by, "policy", "jobs", "mean JCT", "median", "p95", "mean wait", "p95", "slowdown"});
  table.align_left(1);
  const size_t rows = report.outcomes.front().breakdowns[which].rows.size();
  for (size_t row = 0; row < std::min(rows, kMostRows); ++row) {
    for (const PolicyOutcome& outcome : report.outcomes) {
      const cluster::BreakdownRow& figures = outcome.breakdowns[which].rows[row];
      const bool first = &outcome == &report.outcomes.front();
      const std::string name = figures.name.empty() ? "(none)" : figures.name;
      table.add({first ? name : "", outcome.policy, fmt::format("{:.0f}", figures.jobs), seconds_text(figures.mean_jct),
                 seconds_text(figures.median_jct), seconds_text(figures.p95_jct), seconds_text(figures.mean_wait),
                 seconds_text(figures.p95_wait), fmt::format("{:.2f}", figures.mean_slowdown)});
    }
  }
  const std::string more = rows > kMostRows ? fmt::format("  and {} more, which --json has\n", rows - kMostRows) : "";
  return "\n" + table.text() + more;
}

std::string counts_text(const ScheduleReport& report) {
  std::string text;
  for (size_t i = 0; i < report.faults.size(); ++i) {
    if (report.faults[i] == 0) continue;
    text += fmt::format("  left out: {} ({})\n", counted_text(report.faults[i], "row"),
                        name_of(static_cast<cluster::Fault>(i)));
  }
  if (report.passed_over > 0)
    text += fmt::format("  passed over: {}, no GPU jobs\n", counted_text(report.passed_over, "row"));
  if (report.filtered > 0) text += fmt::format("  not asked for: {}\n", counted_text(report.filtered, "job"));
  if (!report.predictor_source.empty()) {
    text += fmt::format("  {}: {}\n", report.predictor, report.predictor_source);
  }
  for (const std::string& line : report.calibration) text += fmt::format("  predicted times: {}\n", line);
  if (!report.unused.empty()) {
    text +=
        fmt::format("  not used: column{} {}\n", report.unused.size() == 1 ? "" : "s", fmt::join(report.unused, ", "));
  }
  if (!report.made.empty()) text += fmt::format("  not measured: {}\n", fmt::join(report.made, "; "));
  return text;
}

void write_figures(JsonWriter& json, const PolicyOutcome& outcome) {
  for (const Figure& figure : kFigures) {
    const double value = outcome.mean_of(figure.of);
    if (figure.count && value == std::floor(value)) {
      json.field(figure.name, static_cast<int64_t>(value));
    } else {
      json.field(figure.name, value);
    }
  }
}

void write_breakdowns(JsonWriter& json, const PolicyOutcome& outcome) {
  for (const Breakdown& breakdown : outcome.breakdowns) {
    json.key(fmt::format("by_{}", name_of(breakdown.by))).begin_array();
    for (const cluster::BreakdownRow& row : breakdown.rows) {
      json.begin_object()
          .field("name", row.name)
          .field("jobs", row.jobs)
          .field("mean_jct", row.mean_jct)
          .field("median_jct", row.median_jct)
          .field("p95_jct", row.p95_jct)
          .field("mean_wait", row.mean_wait)
          .field("p95_wait", row.p95_wait)
          .field("mean_slowdown", row.mean_slowdown)
          .field("unfinished", row.unfinished)
          .end_object();
    }
    json.end_array();
  }
}

void write_json(JsonWriter& json, const ScheduleReport& report, const PolicyOutcome& outcome) {
  json.begin_object()
      .field("schema", "forerun.schedule/1")
      .field("policy", outcome.policy)
      .field("predictor", report.predictor)
      .field("gpus", report.gpus);
  write_figures(json, outcome);
  if (!report.predictor_source.empty()) json.field("predictor_source", report.predictor_source);
  if (!report.calibration.empty()) json.field("calibration", report.calibration);
  json.field("runs", outcome.runs.size()).field("mean_jct_half_width", outcome.jct_half_width());
  if (outcome.runs.size() > 1) {
    json.key("half_widths").begin_object();
    for (const Figure& figure : kFigures) json.field(figure.name, outcome.half_width(figure.of));
    json.end_object();
  }
  if (const auto loss = outcome.loss()) json.field("loss_against_perfect", *loss);
  write_breakdowns(json, outcome);
  json.field("measured_columns", report.real).field("not_measured", report.made);
  if (!report.unused.empty()) json.field("columns_not_used", report.unused);
  json.key("rows_left_out").begin_object();
  for (size_t i = 0; i < report.faults.size(); ++i) {
    if (report.faults[i] > 0) json.field(name_of(static_cast<cluster::Fault>(i)), report.faults[i]);
  }
  json.end_object().end_object();
}

}  // namespace

std::string to_text(const ScheduleReport& report) {
  const size_t runs = report.outcomes.empty() ? 0 : report.outcomes.front().runs.size();
  std::string text =
      fmt::format("{} job{} of {} on {} GPUs, durations: {}{}\n", grouped(report.jobs), report.jobs == 1 ? "" : "s",
                  report.source, report.gpus, report.predictor, runs > 1 ? fmt::format(", {} seeds", runs) : "");
  text += counts_text(report);
  if (report.outcomes.size() == 1) {
    text += fmt::format("\n{}\n{}", report.outcomes.front().policy, single_text(report.outcomes.front()));
  } else {
    text += "\n" + compared_text(report);
  }
  const size_t breakdowns = report.outcomes.empty() ? 0 : report.outcomes.front().breakdowns.size();
  for (size_t which = 0; which < breakdowns; ++which) text += breakdown_text(report, which);
  return text;
}

std::string to_json(const ScheduleReport& report) {
  JsonWriter json(2);
  const bool single = report.outcomes.size() == 1;
  if (!single) json.begin_array();
  for (const PolicyOutcome& outcome : report.outcomes) write_json(json, report, outcome);
  if (!single) json.end_array();
  return json.take();
}

}  // namespace forerun
