#include "report/schedule_runs.h"

#include "base/json_file.h"
#include "base/json_writer.h"

namespace forerun {
namespace {

using cluster::BreakdownRow;
using cluster::Metrics;

struct MetricsField {
  const char* name;
  double Metrics::*real = nullptr;
  int64_t Metrics::*count = nullptr;
};
constexpr MetricsField kMetricsFields[] = {{"jobs", nullptr, &Metrics::jobs},
                                           {"unfinished", nullptr, &Metrics::unfinished},
                                           {"mean_jct", &Metrics::mean_jct},
                                           {"median_jct", &Metrics::median_jct},
                                           {"p95_jct", &Metrics::p95_jct},
                                           {"p99_jct", &Metrics::p99_jct},
                                           {"mean_wait", &Metrics::mean_wait},
                                           {"median_wait", &Metrics::median_wait},
                                           {"p95_wait", &Metrics::p95_wait},
                                           {"p99_wait", &Metrics::p99_wait},
                                           {"makespan", &Metrics::makespan},
                                           {"with_deadline", nullptr, &Metrics::with_deadline},
                                           {"late", nullptr, &Metrics::late},
                                           {"total_tardiness", &Metrics::total_tardiness},
                                           {"mean_tardiness", &Metrics::mean_tardiness},
                                           {"mean_slowdown", &Metrics::mean_slowdown},
                                           {"p99_slowdown", &Metrics::p99_slowdown},
                                           {"mean_fairness", &Metrics::mean_fairness},
                                           {"worst_fairness", &Metrics::worst_fairness},
                                           {"utilisation", &Metrics::utilisation},
                                           {"fragmentation", &Metrics::fragmentation},
                                           {"preemptions", nullptr, &Metrics::preemptions},
                                           {"failures", nullptr, &Metrics::failures}};
static_assert(sizeof(Metrics) == std::size(kMetricsFields) * 8, "every field of Metrics is written");

struct RowField {
  const char* name;
  double BreakdownRow::*value;
};
constexpr RowField kRowFields[] = {
    {"jobs", &BreakdownRow::jobs},         {"unfinished", &BreakdownRow::unfinished},
    {"mean_jct", &BreakdownRow::mean_jct}, {"median_jct", &BreakdownRow::median_jct},
    {"p95_jct", &BreakdownRow::p95_jct},   {"mean_wait", &BreakdownRow::mean_wait},
    {"p95_wait", &BreakdownRow::p95_wait}, {"mean_slowdown", &BreakdownRow::mean_slowdown}};

// What was read, unless the file is at fault.
template <class T>
Result<T> read_well(const JsonObject& json, T read) {
  const Status status = json.status();
  if (status.ok()) return read;
  return Error{status.error().what, status.error().where, "make the part anew with this program"};
}

}  // namespace

std::string to_json(const ScheduleHeading& heading) {
  const ScheduleReport& report = heading.report;
  JsonWriter json;
  json.begin_object()
      .field("source", report.source)
      .field("gpus", report.gpus)
      .field("predictor", report.predictor)
      .field("predictor_source", report.predictor_source)
      .field("jobs", report.jobs)
      .field("filtered", report.filtered)
      .field("passed_over", report.passed_over)
      .field("real", report.real)
      .field("made", report.made)
      .field("unused", report.unused)
      .field("calibration", report.calibration)
      .field("policies", heading.plan.policies)
      .field("runs", heading.plan.runs)
      .field("compared", heading.plan.compared)
      .key("faults")
      .begin_object();
  for (size_t i = 0; i < report.faults.size(); ++i)
    json.field(name_of(static_cast<cluster::Fault>(i)), report.faults[i]);
  return json.end_object().end_object().take();
}

Result<ScheduleHeading> read_schedule_heading(const std::string& text, const std::string& where) {
  Result<JsonObject> json = JsonObject::parse(text, where);
  if (!json) return json.error();
  ScheduleHeading heading;
  ScheduleReport& report = heading.report;
  report.source = json->any_text("source");
  report.gpus = json->any_text("gpus");
  report.predictor = json->any_text("predictor");
  report.predictor_source = json->any_text("predictor_source");
  report.jobs = json->integer("jobs", Sign::not_negative);
  report.filtered = json->integer("filtered", Sign::not_negative);
  report.passed_over = json->integer("passed_over", Sign::not_negative);
  report.real = json->texts("real");
  report.made = json->texts("made");
  report.unused = json->texts("unused");
  report.calibration = json->texts("calibration");
  heading.plan.policies = json->texts("policies");
  heading.plan.runs = json->integer("runs");
  heading.plan.compared = json->flag("compared");
  if (heading.plan.policies.empty()) json->fail("policies", "are none");
  JsonObject faults = json->object("faults");
  for (size_t i = 0; i < report.faults.size(); ++i) {
    report.faults[i] = faults.integer(name_of(static_cast<cluster::Fault>(i)), Sign::not_negative);
  }
  return read_well(*json, std::move(heading));
}

std::string to_json(const SimulatedRun& run) {
  JsonWriter json;
  json.begin_object();
  for (const MetricsField& field : kMetricsFields) {
    if (field.real != nullptr) {
      json.field(field.name, run.metrics.*field.real);
    } else {
      json.field(field.name, run.metrics.*field.count);
    }
  }
  json.key("breakdowns").begin_array();
  for (const Breakdown& breakdown : run.breakdowns) {
    json.begin_object().field("by", name_of(breakdown.by)).key("rows").begin_array();
    for (const BreakdownRow& row : breakdown.rows) {
      json.begin_object().field("name", row.name);
      for (const RowField& field : kRowFields) json.field(field.name, row.*field.value);
      json.end_object();
    }
    json.end_array().end_object();
  }
  return json.end_array().end_object().take();
}

Result<SimulatedRun> read_simulated_run(const std::string& text, const std::string& where) {
  Result<JsonObject> json = JsonObject::parse(text, where);
  if (!json) return json.error();
  SimulatedRun run;
  for (const MetricsField& field : kMetricsFields) {
    if (field.real != nullptr) {
      run.metrics.*field.real = json->number(field.name, Sign::not_negative);
    } else {
      run.metrics.*field.count = json->integer(field.name, Sign::not_negative);
    }
  }
  for (JsonObject& one : json->objects("breakdowns")) {
    const auto by = cluster::parse_breakdown(one.any_text("by"));
    if (!by) {
      one.fail("by", "is not known");
      break;
    }
    Breakdown& breakdown = run.breakdowns.emplace_back(Breakdown{*by, {}});
    for (JsonObject& read : one.objects("rows")) {
      BreakdownRow& row = breakdown.rows.emplace_back();
      row.name = read.any_text("name");
      for (const RowField& field : kRowFields) row.*field.value = read.number(field.name, Sign::not_negative);
    }
  }
  return read_well(*json, std::move(run));
}

}  // namespace forerun
