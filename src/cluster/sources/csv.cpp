// The plain table of jobs that docs/jobs.md describes, one row each, in order of submission:
//
//   id,submit,gpus,duration,deadline,user
//   a,0,4,3600,7200,ann
//
// Durations by GPU type stand in columns duration_TYPE. Instead of seconds a job may have `iterations` and the time of
// one in step_ms or step_ms_TYPE, or `iterations` and a `model` (with `batch`, `set` and the words of setup_text.h). The step
// of a model comes from a table of measured ones where LoadOptions::companion names one (StepTables), and is asked of
// LoadOptions::step_times otherwise, for every GPU type of the cluster. What is not known is left empty.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/csv_cells.h"
#include "base/csv_rows.h"
#include "base/nearest.h"
#include "base/options_text.h"
#include "cluster/sources/cell_values.h"
#include "cluster/sources/sources.h"
#include "cluster/sources/step_tables.h"
#include "predict/setup_text.h"

namespace forerun::cluster {
namespace {

constexpr const char* kCsvRemedy = "correct the row, or pass --lenient to leave such rows out";

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

struct CsvColumns {
  std::optional<size_t> id, submit, gpus, deadline, user, vc, model, priority, memory, least, most, iterations, batch,
      set, gradients, limit, after, array;
  std::vector<std::pair<std::string, size_t>> setup;                              // words of setup_text.h
  std::vector<size_t> times;                                                      // durations or step times
  std::vector<std::string> types;                                                 // of those, where they have types
  bool steps = false;                                                             // they are milliseconds of a step
  enum class Steps : uint8_t { stated, predicted, measured } by = Steps::stated;  // otherwise by model
};

// Columns that say when or where a job may run, which is not simulated: to pass them over would change what is asked.
constexpr const char* kNotSimulated[] = {"afterok",      "depends",     "depends_on", "dependency",
                                         "dependencies", "requires",    "begin",      "not_before",
                                         "hold",         "reservation", "gpu_type"};

bool is_time_column(const std::string& name) {
  for (const char* prefix : {"duration", "step_ms"}) {
    if (name == prefix || name.starts_with(std::string(prefix) + "_")) return true;
  }
  return false;
}

std::vector<std::string> known_columns() {
  std::vector<std::string> known = {
      "id",  "submit", "gpus",     "deadline",   "user",  "vc",    "model", "priority", "batch",       "iterations",
      "set", "group",  "min_gpus", "memory_gib", "limit", "after", "array", "max_gpus", "gradient_mib"};
  known.insert(known.end(), setup_words().begin(), setup_words().end());
  return known;
}

// Columns of a heading that mean nothing here; an Error for those that may not be passed over.
Result<std::vector<std::string>> unused_columns(const CsvRows& rows) {
  const std::vector<std::string> known = known_columns();
  std::vector<std::string> unused;
  for (const std::string& name : rows.heading()) {
    const std::string plain = lower_case(name);
    for (const char* refused : kNotSimulated) {
      if (plain == refused) {
        return Error{fmt::format("the column '{}' is not simulated", name), rows.name() + ":1",
                     "take it out, if the jobs may run without it (jobs that run after others name them in a column "
                     "'after'); docs/jobs.md lists the columns there are"};
      }
    }
    if (is_time_column(plain) || std::find(known.begin(), known.end(), plain) != known.end()) continue;
    unused.push_back(name);
  }
  return unused;
}

// Where times are predicted from what jobs name, a column that nobody reads may be a run option that was misspelt, and the answer
// one to another question.
Status check_unused(const CsvRows& rows, const std::vector<std::string>& unused, const LoadOptions& options) {
  if (unused.empty() || options.lenient) return {};
  return Error{fmt::format("there is no column '{}', and durations are predicted from what the row says", unused[0]),
               rows.name() + ":1",
               fmt::format("{} Parameters of the model stand in `set`; --lenient passes such columns over",
                           did_you_mean(unused[0], known_columns()))};
}

// Whether times are stated in one way only, and once for each type.
Status check_time_columns(const CsvRows& rows) {
  std::vector<std::string> ways, types;
  for (const std::string& name : rows.heading()) {
    const std::string plain = lower_case(name);
    if (!is_time_column(plain)) continue;
    const size_t prefix = plain.starts_with("duration") ? 8 : 7;
    const std::string way = plain.substr(0, prefix) + (plain.size() > prefix ? "_TYPE" : "");
    if (std::find(ways.begin(), ways.end(), way) == ways.end()) ways.push_back(way);
    const std::string type = plain.size() > prefix ? canonical_type(plain.substr(prefix + 1)) : "";
    if (plain.size() > prefix && std::find(types.begin(), types.end(), type) != types.end() && ways.size() == 1) {
      return Error{fmt::format("the column '{}' is of a GPU type that stands in the heading already", name),
                   rows.name() + ":1", "take one of the two out"};
    }
    types.push_back(type);
  }
  if (rows.column("group") && rows.column("vc")) {
    return Error{"the heading has both a group and a vc, which are one", rows.name() + ":1", "take one of the two out"};
  }
  if (ways.size() < 2) return {};
  return Error{fmt::format("the heading states times in two ways: {}", fmt::join(ways, " and ")), rows.name() + ":1",
               "keep one of duration, duration_TYPE, step_ms and step_ms_TYPE"};
}

// A group by either of its names.
std::optional<size_t> group_column(const CsvRows& rows) {
  const auto group = rows.column("group");
  return group ? group : rows.column("vc");
}

Result<CsvColumns> find_columns(const CsvRows& rows, const LoadOptions& options, const StepTables* tables) {
  CsvColumns found{rows.column("id"),       rows.column("submit"),   rows.column("gpus"),
                   rows.column("deadline"), rows.column("user"),     group_column(rows),
                   rows.column("model"),    rows.column("priority"), rows.column("memory_gib"),
                   rows.column("min_gpus"), rows.column("max_gpus"), rows.column("iterations"),
                   rows.column("batch"),    rows.column("set"),      rows.column("gradient_mib"),
                   rows.column("limit"),    rows.column("after"),    rows.column("array")};
  for (const std::string& word : setup_words()) {
    if (const auto column = rows.column(word)) found.setup.emplace_back(word, *column);
  }
  for (const std::string prefix : {"duration", "step_ms"}) {
    if (!found.times.empty()) break;
    found.steps = prefix == "step_ms";
    if (const auto plain = rows.column(prefix)) {
      found.times.push_back(*plain);
      break;
    }
    for (size_t i = 0; i < rows.heading().size(); ++i) {
      if (!lower_case(rows.heading()[i]).starts_with(prefix + "_")) continue;
      found.times.push_back(i);
      found.types.push_back(rows.heading()[i].substr(prefix.size() + 1));
    }
  }
  const bool known = !found.times.empty() && (!found.steps || found.iterations);
  const bool asked = !known && found.model && found.iterations && options.cluster != nullptr;
  if (asked && tables != nullptr) found.by = CsvColumns::Steps::measured;
  if (asked && tables == nullptr && options.step_times) found.by = CsvColumns::Steps::predicted;
  if (found.by != CsvColumns::Steps::stated) {
    for (const GpuPool& pool : options.cluster->pools) found.types.push_back(pool.type);
  }
  if (!known && found.by == CsvColumns::Steps::stated) {
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
  // In units of 2^shift bytes.
  Bytes bytes(std::optional<size_t> column, int shift) {
    const double value = number(column, 0);
    if (!(value >= 0 && value <= 1e6)) return fail(column, "is no amount of memory"), Bytes(0);
    return Bytes(static_cast<int64_t>(std::ldexp(value, shift)));
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

Error too_long(const JobRow& row) {
  return {fmt::format("job '{}' runs for more than 127 years", row.id), "", "give fewer iterations"};
}

// Durations of a job that names its model, one for each GPU type, by asking for the step.
Status ask_durations(const CsvColumns& columns, const LoadOptions& options, JobRow& row) {
  for (const std::string& type : columns.types) {
    const auto answer = options.step_times({*row.configuration, type, row.job.gpus});
    if (!answer) return answer.error();
    if (row.gradients.value == 0) row.gradients = answer->gradients;
    const double duration = answer->step == kNever ? 0 : seconds(answer->step) * row.iterations;
    if (!(duration <= kMostSeconds)) return too_long(row);
    row.durations.push_back(answer->step == kNever ? kNever : time_from_seconds(duration));
  }
  return {};
}

// The same by looking it up; a type that was not measured cannot be used.
Status look_up_durations(const CsvColumns& columns, const StepTables& tables, JobRow& row) {
  const int32_t nodes = (row.job.gpus + kMeasuredGpusPerNode - 1) / kMeasuredGpusPerNode;
  bool any = false;
  for (const std::string& type : columns.types) {
    const SpeedTable* table = tables.find(row.kind, type);
    const double batch = static_cast<double>(std::max<int64_t>(row.configuration->batch, 1)) * row.job.gpus;
    const auto step = table == nullptr ? std::nullopt : table->step(row.job.gpus, nodes, batch);
    if (step && !(*step * row.iterations <= kMostSeconds)) return too_long(row);
    row.durations.push_back(step ? time_from_seconds(*step * row.iterations) : kNever);
    any = any || step;
  }
  if (any) return {};
  return Error{
      fmt::format("no step times were measured for '{}' on {}", row.kind, fmt::join(columns.types, ", ")), "",
      fmt::format("they were for {} on {}", fmt::join(tables.applications(), ", "), fmt::join(tables.types(), ", "))};
}

// What the row trains. Words that mean nothing here are a fault where its time is predicted; a job whose time is stated
// runs all the same.
Configuration configuration_of(const CsvRows& rows, const CsvColumns& columns, const std::string& model,
                               int64_t batch) {
  Configuration found;
  found.model = model;
  found.batch = batch;
  SetupText text;
  for (const auto& [word, column] : columns.setup) {
    const Status status = read_setup_word(word, rows.cell(column), text);
    if (!status && found.fault.empty()) found.fault = status.error().message();
  }
  if (!found.fault.empty()) return found;
  auto setup = parse_setup(text);
  if (!setup) {
    found.fault = setup.error().message();
    return found;
  }
  found.setup = *std::move(setup);
  found.default_optimizer = text.optimizer.empty();
  auto settings = parse_key_values(rows.cell(columns.set), {"", "write set as layers=2;width=64"}, ';');
  if (settings) {
    found.settings = *std::move(settings);
  } else {
    found.fault = settings.error().message();
  }
  return found;
}

// All that the row says but durations.
JobRow read_row(const CsvRows& rows, const CsvColumns& columns, RowReader& cells) {
  JobRow row;
  row.id = columns.id ? rows.cell(columns.id) : std::to_string(rows.line());
  row.job.arrival = cells.seconds(columns.submit, Time(0));
  row.job.deadline = cells.seconds(columns.deadline, kNever);
  row.job.gpus = cells.count(columns.gpus, 1);
  row.job.priority = cells.count(columns.priority, 0);
  row.job.least_gpus = cells.count(columns.least, 0);
  row.job.most_gpus = cells.count(columns.most, 0);
  row.job.memory = cells.bytes(columns.memory, 30);
  row.gradients = cells.bytes(columns.gradients, 20);
  row.iterations = cells.number(columns.iterations, 0);
  if (!rows.cell(columns.limit).empty()) {
    const double limit = cells.number(columns.limit, 1);
    if (!(limit > 0 && limit <= kMostSeconds)) cells.fail(columns.limit, "is no time limit in seconds");
    row.limit = time_from_seconds(limit);
  }
  row.after.resize(split_csv(rows.cell(columns.after), ';', row.after));
  std::erase(row.after, "");
  row.user = rows.cell(columns.user);
  row.virtual_cluster = rows.cell(columns.vc);
  row.kind = rows.cell(columns.model);
  if (row.iterations < 0) cells.fail(columns.iterations, "is negative");
  const int32_t batch = cells.count(columns.batch, 0);
  if (batch < 0) cells.fail(columns.batch, "is negative");
  if (columns.model && columns.iterations && !row.kind.empty() && row.iterations > 0) {
    row.configuration = configuration_of(rows, columns, row.kind, batch);
    row.measured = columns.by != CsvColumns::Steps::predicted;
  }
  return row;
}

constexpr size_t kLargestArray = 10'000;      // a short file is not to ask for more memory than a machine has
constexpr int64_t kLargestIndex = 4'000'000;  // as Slurm has it

// As Slurm writes it: "0-15%4", "1,3,5-9", "0-20:5".
std::optional<ArrayRow> parse_array(std::string_view text) {
  ArrayRow array;
  const size_t percent = text.find('%');
  if (percent != std::string_view::npos) {
    const auto most = parse_integer(text.substr(percent + 1));
    if (!most || *most < 1 || *most > 1'000'000'000) return std::nullopt;
    array.most_at_once = static_cast<int32_t>(*most);
  }
  for (std::string_view part : split_list(text.substr(0, percent), ",")) {
    std::optional<int64_t> step = 1;
    if (const size_t colon = part.find(':'); colon != std::string_view::npos) {
      step = parse_integer(part.substr(colon + 1));
      part = part.substr(0, colon);
    }
    const size_t dash = part.find('-');
    const auto first = parse_integer(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_integer(part.substr(dash + 1));
    if (!first || !last || !step || *first < 0 || *last < *first || *step < 1 || *last > kLargestIndex) {
      return std::nullopt;
    }
    if (static_cast<uint64_t>((*last - *first) / *step) >= kLargestArray - array.indices.size()) return std::nullopt;
    for (int64_t index = *first; index <= *last; index += *step) array.indices.push_back(index);
  }
  std::sort(array.indices.begin(), array.indices.end());
  const bool once = std::adjacent_find(array.indices.begin(), array.indices.end()) == array.indices.end();
  return once && !array.indices.empty() ? std::optional(std::move(array)) : std::nullopt;
}

Status add_csv_row(const CsvRows& rows, const CsvColumns& columns, const StepTables* tables, JobCollector& jobs) {
  if (!rows.complete()) {
    return jobs.reject(Fault::malformed, rows.line(),
                       fmt::format("{} cells under a heading of {}", rows.size(), rows.heading().size()), kCsvRemedy);
  }
  RowReader cells(rows);
  JobRow row = read_row(rows, columns, cells);
  const bool stated = columns.by == CsvColumns::Steps::stated;
  for (size_t i = 0; stated && i < columns.times.size(); ++i) {
    const double factor = columns.steps ? row.iterations * 1e-3 : 1;
    const bool empty = rows.cell(columns.times[i]).empty();  // it cannot run there
    const double value = empty ? 0 : cells.number(columns.times[i], 0) * factor;
    if (!(value <= kMostSeconds)) cells.fail(columns.times[i], "comes to more than 127 years");
    row.durations.push_back(empty ? kNever : time_from_seconds(std::min(value, kMostSeconds)));
  }
  if (!cells.fault().empty()) return jobs.reject(Fault::malformed, rows.line(), cells.fault(), kCsvRemedy);
  if (!stated && !row.configuration) {
    return jobs.reject(Fault::no_duration, rows.line(), fmt::format("job '{}' has no model or no iterations", row.id),
                       kCsvRemedy);
  }
  if (!stated) {
    const Status found = columns.by == CsvColumns::Steps::predicted ? ask_durations(columns, jobs.options(), row)
                                                                    : look_up_durations(columns, *tables, row);
    if (!found) return jobs.reject(Fault::no_duration, rows.line(), found.error().message(), kCsvRemedy);
  }
  if (rows.cell(columns.array).empty()) return jobs.add(std::move(row), rows.line());
  const auto array = parse_array(rows.cell(columns.array));
  if (!array) {
    return jobs.reject(Fault::malformed, rows.line(),
                       fmt::format("'{}' in column array is no list of indices", rows.cell(columns.array)),
                       "write 0-15, 0-15%4 for four at once, or 1,3,7");
  }
  return jobs.add_array(row, *array, rows.line());
}

}  // namespace

Result<LoadedJobs> load_csv(LineReader reader, const LoadOptions& options) {
  if (options.companion.empty()) return load_csv_with(std::move(reader), nullptr, options);
  const auto members = read_tar(options.companion);
  if (!members) return members.error();
  const auto tables = StepTables::read(*members, options.companion);
  return tables ? load_csv_with(std::move(reader), &*tables, options) : Result<LoadedJobs>(tables.error());
}

Result<LoadedJobs> load_csv_with(LineReader reader, const StepTables* tables, const LoadOptions& options) {
  CsvRows rows(std::move(reader), ',');
  if (Status status = rows.begin(); !status) return status.error();
  const auto unused = unused_columns(rows);
  if (!unused) return unused.error();
  if (Status status = check_time_columns(rows); !status) return status.error();
  const auto columns = find_columns(rows, options, tables);
  if (!columns) return columns.error();
  if (columns->by == CsvColumns::Steps::predicted) {
    if (Status status = check_unused(rows, *unused, options); !status) return status.error();
  }
  JobCollector jobs(rows.name(), options, columns->types);
  jobs.require_order();
  if (columns->after) jobs.expect_dependencies();
  while (true) {
    const auto more = rows.next();
    if (!more) return more.error();
    if (!*more) break;
    if (Status status = add_csv_row(rows, *columns, tables, jobs); !status) return status.error();
  }
  auto loaded = jobs.finish(TieOrder::source);
  if (!loaded) return loaded;
  loaded->unused = *unused;
  for (const std::string& name : rows.heading()) {
    if (std::find(unused->begin(), unused->end(), name) == unused->end()) loaded->real.push_back(name);
  }
  Workload& workload = loaded->workload;
  if (columns->by == CsvColumns::Steps::predicted)
    loaded->made.emplace_back("durations: iterations x predicted step times");
  if (tables == nullptr || options.cluster == nullptr) return loaded;
  std::vector<std::string> types;
  for (const GpuPool& pool : options.cluster->pools) types.push_back(pool.type);
  std::vector<double> batch;  // in all
  for (JobIndex job = 0; job < workload.jobs.size(); ++job) {
    const int32_t index = workload.named.empty() ? -1 : workload.named[job].index;
    const int64_t one = index < 0 ? 1 : workload.configurations[static_cast<size_t>(index)].batch;
    batch.push_back(static_cast<double>(std::max<int64_t>(one, 1)) * workload.jobs[job].gpus);
  }
  workload.speeds = std::make_shared<SpeedModel>(tables->speeds(workload.kinds, types, std::move(batch)));
  return loaded;
}

}  // namespace forerun::cluster
