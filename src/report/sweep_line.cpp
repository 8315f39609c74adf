// A line of `sweep --json` read back, so that parts of a sweep can be shown in every form that a whole one has.
//
// Times are whole nanoseconds, printed as milliseconds to the last bit: rounded back they are the same. What no form of a
// sweep shows is left out.
#include <array>
#include <cmath>

#include "base/json_file.h"
#include "report/sweep.h"

namespace forerun {
namespace {

constexpr double kLongestLineTime = 9e18;  // nanoseconds: as far as they go
constexpr int64_t kMostLineOps = 1'000'000'000;

Nanoseconds line_time(JsonObject& line, const char* field) {
  const double nanoseconds = line.number(field, Sign::not_negative) * 1e6;
  if (nanoseconds < kLongestLineTime) return Nanoseconds(std::llround(nanoseconds));
  line.fail(field, "is longer than any time");
  return Nanoseconds(0);
}

int64_t line_count(JsonObject& line, const char* field) { return line.integer(field, Sign::not_negative); }

// The one of `all` that is called so.
template <class T, size_t count>
T line_name(JsonObject& line, const char* field, const std::array<T, count>& all) {
  const std::string text = line.text(field);
  for (const T one : all) {
    if (name_of(one) == text) return one;
  }
  line.fail(field, "'" + text + "' is not known");
  return all[0];
}

template <class T>
T line_name(JsonObject& line, const char* field, std::optional<T> (*find)(std::string_view)) {
  const std::string text = line.text(field);
  if (const auto found = find(text)) return *found;
  line.fail(field, "'" + text + "' is not known");
  return T();
}

void read_line_times(JsonObject& line, Prediction& p) {
  p.times.iteration = line_time(line, "iter_ms");
  p.p10 = line_time(line, "iter_low_ms");
  p.p90 = line_time(line, "iter_high_ms");
  p.times.gpu_busy = line_time(line, "gpu_ms");
  p.times.host_busy = line_time(line, "host_ms");
  p.times.bound = line_name(line, "bound", std::array{Bottleneck::compute, Bottleneck::memory, Bottleneck::host});
  JsonObject phases = line.object("phases");
  p.times.phases[0] = line_time(phases, "forward_ms");
  p.times.phases[1] = line_time(phases, "backward_ms");
  p.times.phases[2] = line_time(phases, "update_ms");
  p.samples_per_second = line.number("samples_per_second", Sign::not_negative);
  if (line.has("tokens_per_second")) p.tokens_per_second = line.number("tokens_per_second", Sign::not_negative);
}

void read_line_memory(JsonObject& line, Prediction& p) {
  p.memory.peak_allocated = Bytes(line_count(line, "peak_allocated"));
  p.memory.peak_reserved = Bytes(line_count(line, "peak_reserved"));
  p.context = Bytes(line_count(line, "context"));
  p.memory_answer.at_least = line.flag("memory_at_least");
  p.memory_answer.verdict =
      line_name(line, "verdict", std::array{FitVerdict::fits, FitVerdict::may_not_fit, FitVerdict::does_not_fit});
}

Prediction read_line(JsonObject& line) {
  Prediction p;
  p.warnings = line.texts("warnings");
  p.id = line.any_text("id");
  p.gpu = line.any_text("gpu");
  p.input.batch = line_count(line, "batch");
  p.setup.precision = line_name(line, "precision", precision_named);
  p.setup.optimizer.kind = line_name(line, "optimizer", optimizer_named);
  read_line_times(line, p);
  read_line_memory(line, p);
  if (line.has("job")) {
    JsonObject job = line.object("job");
    p.job = JobTime{.hours = job.number("hours", Sign::not_negative)};
    if (job.has("price_per_hour")) p.job->price = job.number("price_per_hour", Sign::not_negative);
  }
  p.parameters = line_count(line, "params");
  p.ops = line_count(line, "ops");
  JsonObject unknown = line.object("unknown_ops");
  for (const std::string& name : unknown.keys()) {
    p.unknown_ops[name] = line_count(unknown, name.c_str());
    if (p.unknown_ops[name] > kMostLineOps) line.fail("unknown_ops", "are more than any model has");
  }
  return p;
}

}  // namespace

Result<SweepLine> read_sweep_json(const std::vector<std::string>& axes, const std::string& json,
                                  const std::string& where) {
  const auto wrong = [&](const Error& error) {
    return Error{error.what, error.where, "make the part anew with this program"};
  };
  Result<JsonObject> line = JsonObject::parse(json, where);
  if (!line) return wrong(line.error());
  std::vector<std::string> values;
  JsonObject given = line->object("sweep");
  for (const std::string& axis : axes) values.push_back(given.any_text(axis));
  Result<Prediction> prediction = Error{};
  if (line->has("error")) {
    JsonObject fault = line->object("fault");
    prediction = Error{fault.any_text("what"), fault.any_text("where"), fault.any_text("remedy")};
  } else {
    prediction = read_line(*line);
  }
  if (const Status status = line->status(); !status.ok()) return wrong(status.error());
  return SweepLine{std::move(values), std::move(prediction)};
}

}  // namespace forerun
