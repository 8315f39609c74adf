#include "lab/accuracy/compile_accuracy.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "base/json_writer.h"
#include "lab/accuracy/eval_schema.h"
#include "report/table.h"

namespace forerun {
namespace {

constexpr double kCompileGain = 0.05;  // below it a difference is noise

class AbsoluteMean {
 public:
  void add(double value) { sum_ += std::abs(value), ++count_; }
  [[nodiscard]] double value() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  [[nodiscard]] int64_t count() const { return count_; }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

double relative_error(double predicted, double measured) { return predicted / measured - 1; }

void count_hit(bool right, CompileHits& hits) {
  ++hits.of;
  hits.right += right ? 1 : 0;
}

std::string out_of(const CompileHits& hits) {
  return hits.of == 0 ? "of none" : fmt::format("{} of {}", hits.right, hits.of);
}

bool is_of(const CompileCase& c, CompileMode mode, bool kept_aside) {
  return c.mode == mode && c.kept_aside == kept_aside;
}

std::string cases_text(const CompileAccuracy& accuracy, CompileMode mode, bool kept_aside) {
  Table table({fmt::format("{}, {}", name_of(mode), kept_aside ? "kept aside" : "looked at"), "bound by", "iteration",
               "GPU time", "kernels", "allocated", "reserved", "eager", "eager GPU", "gain", "predicted"});
  for (const CompileCase& c : accuracy.cases) {
    if (!is_of(c, mode, kept_aside)) continue;
    const PairFigures &p = c.predicted, &m = c.measured;
    table.add({c.name, c.host_bound() ? "host" : "GPU", signed_percent(relative_error(p.iter_ms, m.iter_ms)),
               signed_percent(relative_error(p.gpu_ms, m.gpu_ms)), signed_percent(relative_error(p.kernels, m.kernels)),
               signed_percent(relative_error(p.allocated, m.allocated)),
               signed_percent(relative_error(p.reserved, m.reserved)),
               signed_percent(relative_error(c.predicted_eager.iter_ms, c.measured_eager.iter_ms)),
               signed_percent(relative_error(c.predicted_eager.gpu_ms, c.measured_eager.gpu_ms)),
               fmt::format("x {:.2f}", c.measured_gain()), fmt::format("x {:.2f}", c.predicted_gain())});
  }
  return table.text();
}

std::string bars_text(const CompileAccuracy& accuracy, CompileMode mode) {
  const CompileSummary aside = summary_of(accuracy, mode, true), seen = summary_of(accuracy, mode, false);
  Table table({fmt::format("{}, mean error", name_of(mode)), "kept aside", "looked at", "asked for"});
  const auto of_some = [](double error, int64_t cases) { return cases == 0 ? "of none" : percent(error); };
  const auto row = [&](const char* what, double CompileSummary::*error, const char* bar) {
    table.add({what, of_some(aside.*error, aside.cases), of_some(seen.*error, seen.cases), bar});
  };
  row("GPU time", &CompileSummary::gpu, "6 %");
  const auto by_host = [](const CompileSummary& sum) { return sum.cases - sum.gpu_bound_cases; };
  table.add({"iteration, the GPU bounds it", of_some(aside.gpu_bound, aside.gpu_bound_cases),
             of_some(seen.gpu_bound, seen.gpu_bound_cases), "7 %"});
  table.add({"iteration, the host bounds it", of_some(aside.host_bound, by_host(aside)),
             of_some(seen.host_bound, by_host(seen)), "15 %"});
  const auto of_those = [](double error, int64_t cases) {
    return cases == 0 ? "" : fmt::format("{} of {}", percent(error), cases);
  };
  table.add({"  with the host as it was read", of_those(aside.host_read_bound, aside.host_read_bound_cases),
             of_those(seen.host_read_bound, seen.host_read_bound_cases), "15 %"});
  row("kernels", &CompileSummary::kernels, "10 %");
  row("peak allocated", &CompileSummary::allocated, "2 %");
  if (!launches_graphs(mode)) {
    row("peak reserved, cache emptied", &CompileSummary::reserved, "4 %");
  }
  table.add({"peak reserved, whole run", of_those(aside.reserved_kept_cache, aside.kept_cache_cases),
             of_those(seen.reserved_kept_cache, seen.kept_cache_cases), "4 %"});
  const auto points = [](double share) { return fmt::format("{:.1f} points", 100 * share); };
  const auto all_points = [&](const CompileSummary& sum) { return sum.cases == 0 ? "of none" : points(sum.gain); };
  table.add({"gain", all_points(aside), all_points(seen), "6 points"});
  const auto points_of_those = [&](const CompileSummary& sum) {
    return sum.host_read_cases == 0 ? "" : fmt::format("{} of {}", points(sum.host_read_gain), sum.host_read_cases);
  };
  table.add({"  with the host as it was read", points_of_those(aside), points_of_those(seen), "6 points"});
  table.add({"sign of gains above 5 %", out_of(aside.signs), out_of(seen.signs), "all"});
  table.add({"iterations within the range", out_of(aside.iteration_range), out_of(seen.iteration_range), ""});
  table.add({"GPU times within the range", out_of(aside.gpu_range), out_of(seen.gpu_range), ""});
  table.add({"allocated within the range", out_of(aside.allocated_range), out_of(seen.allocated_range), ""});
  row("eager iteration", &CompileSummary::eager, "");
  table.add({"  with the host as it was read", of_those(aside.host_read_eager, aside.host_read_cases),
             of_those(seen.host_read_eager, seen.host_read_cases), ""});
  row("eager GPU time", &CompileSummary::eager_gpu, "");
  row("eager peak allocated", &CompileSummary::eager_allocated, "");
  return table.text();
}

void write(JsonWriter& json, std::string_view key, const CompileHits& hits) {
  json.key(key).begin_object().field("right", hits.right).field("of", hits.of).end_object();
}

void write(JsonWriter& json, std::string_view key, const CompileSummary& sum) {
  json.key(key)
      .begin_object()
      .field("cases", sum.cases)
      .field("gpu_bound_cases", sum.gpu_bound_cases)
      .field("gpu", sum.gpu)
      .field("gpu_bound", sum.gpu_bound)
      .field("host_bound", sum.host_bound)
      .field("kernels", sum.kernels)
      .field("allocated", sum.allocated)
      .field("reserved", sum.reserved)
      .field("kept_cache_cases", sum.kept_cache_cases)
      .field("reserved_kept_cache", sum.reserved_kept_cache)
      .field("gain", sum.gain)
      .field("host_read_cases", sum.host_read_cases)
      .field("host_read_bound_cases", sum.host_read_bound_cases)
      .field("host_read_bound", sum.host_read_bound)
      .field("host_read_gain", sum.host_read_gain)
      .field("host_read_eager", sum.host_read_eager)
      .field("eager", sum.eager)
      .field("eager_gpu", sum.eager_gpu)
      .field("eager_allocated", sum.eager_allocated);
  write(json, "signs", sum.signs);
  write(json, "iteration_range", sum.iteration_range);
  write(json, "gpu_range", sum.gpu_range);
  write(json, "allocated_range", sum.allocated_range);
  json.end_object();
}

void write(JsonWriter& json, std::string_view key, const PairFigures& figures) {
  json.key(key)
      .begin_object()
      .field("iter_ms", figures.iter_ms)
      .field("gpu_ms", figures.gpu_ms)
      .field("kernels", figures.kernels)
      .field("peak_allocated", figures.allocated)
      .field("peak_reserved", figures.reserved);
  if (figures.reserved_kept_cache > 0) json.field("peak_reserved_kept_cache", figures.reserved_kept_cache);
  json.end_object();
}

}  // namespace

std::vector<CompileMode> CompileAccuracy::modes() const {
  std::set<CompileMode> found;
  for (const CompileCase& c : cases) found.insert(c.mode);
  return {found.begin(), found.end()};
}

CompileSummary summary_of(const CompileAccuracy& accuracy, CompileMode mode, bool kept_aside) {
  CompileSummary sum;
  AbsoluteMean gpu, gpu_bound, host_bound, kernels, allocated, reserved, kept_cache, gain, eager, eager_gpu,
      eager_allocated, host_read_bound, host_read_gain, host_read_eager;
  for (const CompileCase& c : accuracy.cases) {
    if (!is_of(c, mode, kept_aside)) continue;
    const PairFigures &p = c.predicted, &m = c.measured;
    ++sum.cases;
    gpu.add(relative_error(p.gpu_ms, m.gpu_ms));
    (c.host_bound() ? host_bound : gpu_bound).add(relative_error(p.iter_ms, m.iter_ms));
    kernels.add(relative_error(p.kernels, m.kernels));
    allocated.add(relative_error(p.allocated, m.allocated));
    reserved.add(relative_error(p.reserved, m.reserved));
    if (m.reserved_kept_cache > 0) kept_cache.add(relative_error(p.reserved_kept_cache, m.reserved_kept_cache));
    gain.add(c.predicted_gain() - c.measured_gain());
    eager.add(relative_error(c.predicted_eager.iter_ms, c.measured_eager.iter_ms));
    eager_gpu.add(relative_error(c.predicted_eager.gpu_ms, c.measured_eager.gpu_ms));
    eager_allocated.add(relative_error(c.predicted_eager.allocated, c.measured_eager.allocated));
    if (std::abs(c.measured_gain() - 1) > kCompileGain) {
      count_hit((c.predicted_gain() < 1) == (c.measured_gain() < 1), sum.signs);
    }
    if (c.with_host) {
      host_read_gain.add(c.gain_with_host() - c.measured_gain());
      host_read_eager.add(relative_error(c.with_host->eager_iter_ms, c.measured_eager.iter_ms));
      if (c.host_bound()) host_read_bound.add(relative_error(c.with_host->iter_ms, m.iter_ms));
    }
    count_hit(c.iter_low_ms <= m.iter_ms && m.iter_ms <= c.iter_high_ms, sum.iteration_range);
    count_hit(c.gpu_low_ms <= m.gpu_ms && m.gpu_ms <= c.gpu_high_ms, sum.gpu_range);
    count_hit(c.allocated_low <= m.allocated && m.allocated <= c.allocated_high, sum.allocated_range);
  }
  sum.gpu_bound_cases = gpu_bound.count();
  sum.gpu = gpu.value();
  sum.gpu_bound = gpu_bound.value();
  sum.host_bound = host_bound.value();
  sum.kernels = kernels.value();
  sum.allocated = allocated.value();
  sum.reserved = reserved.value();
  sum.kept_cache_cases = kept_cache.count();
  sum.reserved_kept_cache = kept_cache.value();
  sum.gain = gain.value();
  sum.host_read_cases = host_read_gain.count();
  sum.host_read_bound_cases = host_read_bound.count();
  sum.host_read_bound = host_read_bound.value();
  sum.host_read_gain = host_read_gain.value();
  sum.host_read_eager = host_read_eager.value();
  sum.eager = eager.value();
  sum.eager_gpu = eager_gpu.value();
  sum.eager_allocated = eager_allocated.value();
  return sum;
}

std::string to_text(const CompileAccuracy& accuracy) {
  std::string text = accuracy.data + "\n\n";
  for (const CompileMode mode : accuracy.modes()) {
    text += cases_text(accuracy, mode, false) + "\n" + cases_text(accuracy, mode, true) + "\n";
  }
  for (const CompileMode mode : accuracy.modes()) text += bars_text(accuracy, mode) + "\n";
  text +=
      "Errors are predicted over measured, less 1. Gain: compiled to eager iteration. eager: errors of "
      "the same set-up without the compiler.\n";
  for (const std::string& problem : accuracy.problems) text += problem + "\n";
  return text;
}

std::string to_json(const CompileAccuracy& accuracy) {
  JsonWriter json;
  json.begin_object().field("schema", eval_schema("compile")).field("data", accuracy.data);
  json.key("modes").begin_array();
  for (const CompileMode mode : accuracy.modes()) {
    json.begin_object().field("mode", name_of(mode));
    write(json, "kept_aside", summary_of(accuracy, mode, true));
    write(json, "looked_at", summary_of(accuracy, mode, false));
    json.end_object();
  }
  json.end_array().key("cases").begin_array();
  for (const CompileCase& c : accuracy.cases) {
    json.begin_object()
        .field("name", c.name)
        .field("mode", name_of(c.mode))
        .field("kept_aside", c.kept_aside)
        .field("bound", c.bound);
    write(json, "measured_eager", c.measured_eager);
    write(json, "measured", c.measured);
    write(json, "predicted_eager", c.predicted_eager);
    write(json, "predicted", c.predicted);
    if (c.with_host) {
      json.key("predicted_with_host")
          .begin_object()
          .field("eager_iter_ms", c.with_host->eager_iter_ms)
          .field("iter_ms", c.with_host->iter_ms)
          .end_object();
    }
    json.end_object();
  }
  json.end_array().key("problems").begin_array();
  for (const std::string& problem : accuracy.problems) json.value(problem);
  return json.end_array().end_object().take();
}

}  // namespace forerun
