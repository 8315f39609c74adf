// A line of `sweep --json` read back, so that parts of a sweep can be shown in every form that a whole one has.
//
// Times are whole nanoseconds, printed as milliseconds to the last bit: rounded back they are the same. What no form of a
// sweep shows is left out.
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/sweep.h"

namespace forerun {
namespace {

using SweepJson = nlohmann::json;

constexpr double kLargest = 0x1p60;  // no time, size or count is; sums of two stay in range
constexpr double kMostOps = 0x1p40;  // of one kind

// Reads fields; the first that is missing or of another type is remembered, and what is read is 0 or empty from then on.
class LineFields {
 public:
  explicit LineFields(const SweepJson& object) : object_(object) {}

  [[nodiscard]] const SweepJson& at(const char* name) {
    static const SweepJson none;
    const auto found = object_.find(name);
    if (found != object_.end()) return *found;
    fail(name);
    return none;
  }
  double number(const char* name) {
    const SweepJson& value = at(name);
    if (value.is_number()) return value.get<double>();
    return fail(name), 0;
  }
  int64_t integer(const char* name) {
    const SweepJson& value = at(name);
    if (value.is_number_integer() && std::abs(value.get<double>()) < kLargest) return value.get<int64_t>();
    return fail(name), 0;
  }
  std::string text(const char* name) {
    const SweepJson& value = at(name);
    if (value.is_string()) return value.get<std::string>();
    return fail(name), "";
  }
  bool flag(const char* name) {
    const SweepJson& value = at(name);
    if (value.is_boolean()) return value.get<bool>();
    return fail(name), false;
  }
  Nanoseconds time(const char* name) {
    const double nanoseconds = number(name) * 1e6;
    if (std::abs(nanoseconds) < kLargest) return Nanoseconds(std::llround(nanoseconds));
    return fail(name), Nanoseconds(0);
  }
  // The one of `all` that is called so.
  template <class T, size_t count>
  T named(const char* name, const T (&all)[count]) {
    const std::string text = this->text(name);
    for (const T one : all) {
      if (name_of(one) == text) return one;
    }
    return fail(name), all[0];
  }
  template <class T>
  T known(const char* name, std::optional<T> (*find)(std::string_view)) {
    const auto found = find(text(name));
    if (found) return *found;
    return fail(name), T();
  }

  void fail(const char* name) {
    if (fault_.empty()) fault_ = name;
  }
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  const SweepJson& object_;
  std::string fault_;  // the field's name
};

void read_times(LineFields& line, Prediction& p) {
  p.times.iteration = line.time("iter_ms");
  p.p10 = line.time("iter_low_ms");
  p.p90 = line.time("iter_high_ms");
  p.times.gpu_busy = line.time("gpu_ms");
  p.times.host_busy = line.time("host_ms");
  p.times.bound = line.named("bound", {Bottleneck::compute, Bottleneck::memory, Bottleneck::host});
  LineFields phases(line.at("phases"));
  p.times.phases[0] = phases.time("forward_ms");
  p.times.phases[1] = phases.time("backward_ms");
  p.times.phases[2] = phases.time("update_ms");
  if (!phases.fault().empty()) line.fail("phases");
  p.samples_per_second = line.number("samples_per_second");
}

void read_job(LineFields& line, Prediction& p) {
  LineFields fields(line.at("job"));
  JobTime job;
  job.hours = fields.number("hours");
  const SweepJson& object = line.at("job");
  if (object.is_object() && object.contains("price_per_hour")) job.price = fields.number("price_per_hour");
  if (!fields.fault().empty()) line.fail("job");
  p.job = job;
}

Prediction read_prediction(LineFields& line, const SweepJson& object) {
  Prediction p;
  if (object.contains("warnings") && object["warnings"].is_array()) {
    for (const SweepJson& warning : object["warnings"]) {
      if (warning.is_string()) p.warnings.push_back(warning.get<std::string>());
    }
  }
  p.id = line.text("id");
  p.gpu = line.text("gpu");
  p.input.batch = line.integer("batch");
  p.setup.precision = line.known("precision", precision_named);
  p.setup.optimizer.kind = line.known("optimizer", optimizer_named);
  read_times(line, p);
  if (object.contains("job")) read_job(line, p);
  p.parameters = line.integer("params");
  p.ops = line.integer("ops");
  p.memory.peak_allocated = Bytes(line.integer("peak_allocated"));
  p.memory.peak_reserved = Bytes(line.integer("peak_reserved"));
  p.context = Bytes(line.integer("context"));
  p.memory_answer.at_least = line.flag("memory_at_least");
  p.memory_answer.verdict =
      line.named("verdict", {FitVerdict::fits, FitVerdict::may_not_fit, FitVerdict::does_not_fit});
  const SweepJson& unknown = line.at("unknown_ops");
  for (const auto& [name, count] : unknown.items()) {
    if (count.is_number_integer() && std::abs(count.get<double>()) < kMostOps)
      p.unknown_ops[name] = count.get<int64_t>();
  }
  if (object.contains("tokens_per_second")) p.tokens_per_second = line.number("tokens_per_second");
  return p;
}

}  // namespace

Result<SweepLine> read_sweep_json(const std::vector<std::string>& axes, const std::string& json,
                                  const std::string& where) {
  const auto wrong = [&](const std::string& what) {
    return Error{what, where, "make the part anew with this program"};
  };
  const SweepJson object = SweepJson::parse(json, nullptr, false);
  if (!object.is_object()) return wrong("is no row of a sweep");
  LineFields line(object);
  LineFields given(line.at("sweep"));
  std::vector<std::string> values;
  for (const std::string& axis : axes) values.push_back(given.text(axis.c_str()));
  if (!given.fault().empty()) return wrong("has no value for " + given.fault());
  if (object.contains("error")) {
    LineFields fault(line.at("fault"));
    Error error{fault.text("what"), fault.text("where"), fault.text("remedy")};
    if (!fault.fault().empty()) return wrong("has no field fault." + fault.fault());
    return SweepLine{std::move(values), std::move(error)};
  }
  Prediction prediction = read_prediction(line, object);
  if (!line.fault().empty()) return wrong("has no field " + line.fault() + " that can be read");
  return SweepLine{std::move(values), std::move(prediction)};
}

}  // namespace forerun
