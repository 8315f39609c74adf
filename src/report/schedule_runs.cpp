#include "report/schedule_runs.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_writer.h"

namespace forerun {
namespace {

using cluster::BreakdownRow;
using cluster::Metrics;
using RunJson = nlohmann::json;

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

Error not_readable(const std::string& where) {
  return {"is no simulation of a schedule that can be read", where, "make the part anew with this program"};
}

// get<>() of nlohmann throws where a field is missing or of another type: what is read here is our own, and one catch is enough.
template <class T, class Read>
Result<T> read_json(const std::string& text, const std::string& where, const Read& read) {
  try {
    return read(RunJson::parse(text));
  } catch (const RunJson::exception&) {
    return not_readable(where);
  }
}

// Without a look, nlohmann converts any number to a whole one.
int64_t whole_in(const RunJson& json) {
  if (json.is_number_integer()) return json.get<int64_t>();
  throw RunJson::type_error::create(302, "no whole number", &json);
}

}  // namespace

std::string to_json(const ScheduleHeading& heading) {
  const ScheduleReport& report = heading.report;
  const std::vector<int64_t> faults(report.faults.begin(), report.faults.end());
  JsonWriter json;
  return json.begin_object()
      .field("source", report.source)
      .field("gpus", report.gpus)
      .field("predictor", report.predictor)
      .field("predictor_source", report.predictor_source)
      .field("jobs", report.jobs)
      .field("filtered", report.filtered)
      .field("passed_over", report.passed_over)
      .field("faults", faults)
      .field("real", report.real)
      .field("made", report.made)
      .field("unused", report.unused)
      .field("policies", heading.plan.policies)
      .field("runs", heading.plan.runs)
      .field("compared", heading.plan.compared)
      .end_object()
      .take();
}

Result<ScheduleHeading> read_schedule_heading(const std::string& text, const std::string& where) {
  return read_json<ScheduleHeading>(text, where, [&](const RunJson& json) -> Result<ScheduleHeading> {
    using Texts = std::vector<std::string>;
    ScheduleHeading heading;
    ScheduleReport& report = heading.report;
    report.source = json.at("source").get<std::string>();
    report.gpus = json.at("gpus").get<std::string>();
    report.predictor = json.at("predictor").get<std::string>();
    report.predictor_source = json.at("predictor_source").get<std::string>();
    report.jobs = whole_in(json.at("jobs"));
    report.filtered = whole_in(json.at("filtered"));
    report.passed_over = whole_in(json.at("passed_over"));
    const RunJson& faults = json.at("faults");
    if (!faults.is_array() || faults.size() != report.faults.size()) return not_readable(where);
    std::transform(faults.begin(), faults.end(), report.faults.begin(), whole_in);
    report.real = json.at("real").get<Texts>();
    report.made = json.at("made").get<Texts>();
    report.unused = json.at("unused").get<Texts>();
    heading.plan.policies = json.at("policies").get<Texts>();
    heading.plan.runs = whole_in(json.at("runs"));
    heading.plan.compared = json.at("compared").get<bool>();
    if (heading.plan.policies.empty() || heading.plan.runs < 1) return not_readable(where);
    return heading;
  });
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
  return read_json<SimulatedRun>(text, where, [&](const RunJson& json) -> Result<SimulatedRun> {
    SimulatedRun run;
    for (const MetricsField& field : kMetricsFields) {
      if (field.real != nullptr) {
        run.metrics.*field.real = json.at(field.name).get<double>();
      } else {
        run.metrics.*field.count = whole_in(json.at(field.name));
      }
    }
    for (const RunJson& one : json.at("breakdowns")) {
      const auto by = cluster::parse_breakdown(one.at("by").get<std::string>());
      if (!by) return not_readable(where);
      Breakdown& breakdown = run.breakdowns.emplace_back(Breakdown{*by, {}});
      for (const RunJson& read : one.at("rows")) {
        BreakdownRow& row = breakdown.rows.emplace_back();
        row.name = read.at("name").get<std::string>();
        for (const RowField& field : kRowFields) row.*field.value = read.at(field.name).get<double>();
      }
    }
    return run;
  });
}

}  // namespace forerun
