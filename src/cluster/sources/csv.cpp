// The plain table of jobs that docs/jobs.md describes, one row each, in order of submission:
//
//   id,submit,gpus,duration,deadline,user
//   a,0,4,3600,7200,ann
//
// Durations by GPU type stand in columns duration_TYPE. Instead of seconds a job may have `iterations` and the time of
// one in step_ms or step_ms_TYPE, or `iterations` and a `model` (with `batch` and `precision`), whose step is then asked
// of LoadOptions::step_times for every GPU type of the cluster. What is not known is left empty.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cluster/sources/csv_rows.h"
#include "cluster/sources/sources.h"

namespace forerun::cluster {
namespace {

constexpr const char* kCsvRemedy = "correct the row, or pass --lenient to leave such rows out";

struct CsvColumns {
  std::optional<size_t> id, submit, gpus, deadline, user, vc, model, priority, memory, least, most, iterations, batch,
      precision;
  std::vector<size_t> times;       // durations or step times
  std::vector<std::string> types;  // of those, where they have types
  bool steps = false;              // they are milliseconds of a step
  bool predicted = false;          // step times are asked for, by model
};

Result<CsvColumns> find_columns(const CsvRows& rows, const LoadOptions& options) {
  CsvColumns found{rows.column("id"),       rows.column("submit"),   rows.column("gpus"),
                   rows.column("deadline"), rows.column("user"),     rows.column("vc"),
                   rows.column("model"),    rows.column("priority"), rows.column("memory_gib"),
                   rows.column("min_gpus"), rows.column("max_gpus"), rows.column("iterations"),
                   rows.column("batch"),    rows.column("precision")};
  for (const std::string prefix : {"duration", "step_ms"}) {
    if (!found.times.empty()) break;
    found.steps = prefix == "step_ms";
    if (const auto plain = rows.column(prefix)) {
      found.times.push_back(*plain);
      break;
    }
    for (size_t i = 0; i < rows.heading().size(); ++i) {
      if (!rows.heading()[i].starts_with(prefix + "_")) continue;
      found.times.push_back(i);
      found.types.push_back(rows.heading()[i].substr(prefix.size() + 1));
    }
  }
  const bool known = !found.times.empty() && (!found.steps || found.iterations);
  found.predicted = !known && found.model && found.iterations && options.step_times && options.cluster != nullptr;
  if (found.predicted) {
    for (const GpuPool& pool : options.cluster->pools) found.types.push_back(pool.type);
  }
  if (!known && !found.predicted) {
    return Error{"the heading has no durations", rows.name() + ":1",
                 "give a column duration (seconds), columns duration_TYPE, or iterations with step_ms or model; see "
                 "docs/jobs.md"};
  }
  return found;
}

// Reads cells, keeping the first fault.
class RowReader {
 public:
  explicit RowReader(const CsvRows& rows) : rows_(rows) {}

  Time seconds(std::optional<size_t> column, Time otherwise) {
    const std::string& text = rows_.cell(column);
    if (text.empty()) return otherwise;
    if (const auto time = parse_seconds(text)) return *time;
    if (const auto date = parse_date(text)) return *date;
    return fail(column, "is neither seconds nor a date"), otherwise;
  }
  double number(std::optional<size_t> column, double otherwise) {
    const std::string& text = rows_.cell(column);
    if (text.empty()) return otherwise;
    const auto value = parse_number(text);
    if (!value || !std::isfinite(*value)) return fail(column, "is no number"), otherwise;
    return *value;
  }
  int32_t count(std::optional<size_t> column, int32_t otherwise) {
    const std::string& text = rows_.cell(column);
    if (text.empty()) return otherwise;
    const auto value = parse_integer(text);
    if (!value || std::abs(*value) > 1'000'000'000) return fail(column, "is no whole number"), otherwise;
    return static_cast<int32_t>(*value);
  }
  void fail(std::optional<size_t> column, const std::string& what) {
    if (fault_.empty())
      fault_ = fmt::format("'{}' in column {} {}", rows_.cell(column), rows_.heading()[*column], what);
  }
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  const CsvRows& rows_;
  std::string fault_;
};

// Durations of a job that names its model, one for each GPU type.
Result<std::vector<Time>> ask_durations(const CsvRows& rows, const CsvColumns& columns, double iterations,
                                        int32_t batch, const LoadOptions& options) {
  std::vector<Time> durations;
  for (const std::string& type : columns.types) {
    const auto step = options.step_times({rows.cell(columns.model), batch, rows.cell(columns.precision), type});
    if (!step) return step.error();
    durations.push_back(*step == kNever ? kNever : time_from_seconds(seconds(*step) * iterations));
  }
  return durations;
}

Status add_csv_row(const CsvRows& rows, const CsvColumns& columns, JobCollector& jobs) {
  if (!rows.complete()) {
    return jobs.reject(Fault::malformed, rows.line(),
                       fmt::format("{} cells under a heading of {}", rows.size(), rows.heading().size()), kCsvRemedy);
  }
  RowReader cells(rows);
  JobRow row;
  row.id = columns.id ? rows.cell(columns.id) : std::to_string(rows.line());
  row.job.arrival = cells.seconds(columns.submit, Time(0));
  row.job.deadline = cells.seconds(columns.deadline, kNever);
  row.job.gpus = cells.count(columns.gpus, 1);
  row.job.priority = cells.count(columns.priority, 0);
  row.job.least_gpus = cells.count(columns.least, 0);
  row.job.most_gpus = cells.count(columns.most, 0);
  const double gib = cells.number(columns.memory, 0);
  if (gib < 0 || gib > 1e6) cells.fail(columns.memory, "is no amount of memory");
  row.job.memory = Bytes(static_cast<int64_t>(std::clamp(gib, 0.0, 1e6) * 1024 * 1024 * 1024));
  const double iterations = cells.number(columns.iterations, 0);
  for (const size_t column : columns.times) {
    const double factor = columns.steps ? iterations * 1e-3 : 1;
    const double value = rows.cell(column).empty() ? INFINITY : cells.number(column, 0) * factor;
    row.durations.push_back(time_from_seconds(value));
  }
  const int32_t batch = cells.count(columns.batch, 0);
  if (columns.predicted && cells.fault().empty()) {
    auto asked = ask_durations(rows, columns, iterations, batch, jobs.options());
    if (!asked) return jobs.reject(Fault::no_duration, rows.line(), asked.error().message(), kCsvRemedy);
    row.durations = *std::move(asked);
  }
  row.user = rows.cell(columns.user);
  row.virtual_cluster = rows.cell(columns.vc);
  row.kind = rows.cell(columns.model);
  if (!cells.fault().empty()) return jobs.reject(Fault::malformed, rows.line(), cells.fault(), kCsvRemedy);
  return jobs.add(std::move(row), rows.line());
}

}  // namespace

Result<LoadedJobs> load_csv(LineReader reader, const LoadOptions& options) {
  CsvRows rows(std::move(reader), ',');
  if (Status status = rows.begin(); !status) return status.error();
  const auto columns = find_columns(rows, options);
  if (!columns) return columns.error();
  JobCollector jobs(rows.name(), options, columns->types);
  jobs.require_order();
  while (true) {
    const auto more = rows.next();
    if (!more) return more.error();
    if (!*more) break;
    if (Status status = add_csv_row(rows, *columns, jobs); !status) return status.error();
  }
  auto loaded = jobs.finish(TieOrder::source);
  if (loaded) loaded->real = rows.heading();
  return loaded;
}

}  // namespace forerun::cluster
