#include "lab/accuracy/whatif_accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/json_writer.h"
#include "lab/accuracy/eval_schema.h"
#include "report/table.h"

namespace forerun {
namespace {

constexpr double kGain = 0.05;  // below it a difference is noise

// Whether b has the sign of a, where a is large enough to have one.
void count_sign(double a, double b, Hits& hits) {
  if (std::abs(a) <= kGain) return;
  ++hits.all;
  hits.right += (a > 0) == (b > 0) ? 1 : 0;
}

void count_rank(const WhatIfCase& a, const WhatIfCase& b, Hits& ranks) {
  const double apart = a.measured_gain() - b.measured_gain();
  if (a.model != b.model || std::abs(apart) <= kGain) return;
  ++ranks.all;
  ranks.right += (apart > 0) == (a.predicted_gain() > b.predicted_gain()) ? 1 : 0;
}

std::string_view name_of(WhatIfKind kind) {
  switch (kind) {
    case WhatIfKind::base: return "base";
    case WhatIfKind::variant: return "variant";
    case WhatIfKind::batch: return "batch";
  }
  return "";
}

std::string points(double share) { return fmt::format("{:+.1f}", 100 * share); }
std::string out_of(const Hits& hits) { return hits.all == 0 ? "-" : fmt::format("{} of {}", hits.right, hits.all); }

std::string bases_text(const std::vector<WhatIfCase>& cases) {
  Table table({"base of", "measured ms", "predicted ms", "error", "GPU busy ms", "predicted", "error", "learned from"});
  for (const WhatIfCase& c : cases) {
    if (c.kind != WhatIfKind::base) continue;
    table.add({c.model, fmt::format("{:.2f}", c.measured.ms), fmt::format("{:.2f}", c.predicted.ms),
               signed_percent(c.error()), fmt::format("{:.2f}", c.measured.gpu_ms),
               fmt::format("{:.2f}", c.predicted.gpu_ms), signed_percent(c.gpu_error()), c.trained_on ? "yes" : "no"});
  }
  return table.text();
}

std::string gains_text(const std::vector<WhatIfCase>& cases, WhatIfKind kind, const std::string& heading) {
  Table table({"model", heading, "measured ms", "predicted ms", "error", "gain", "predicted", "off by", "GPU gain",
               "predicted", "off by", "bound by"});
  table.align_left(1);
  for (const WhatIfCase& c : cases) {
    if (c.kind != kind) continue;
    table.add({c.model, c.variant, fmt::format("{:.2f}", c.measured.ms), fmt::format("{:.2f}", c.predicted.ms),
               signed_percent(c.error()), signed_percent(c.measured_gain()), signed_percent(c.predicted_gain()),
               points(c.gain_error()), signed_percent(c.measured_gpu_gain()), signed_percent(c.predicted_gpu_gain()),
               points(c.gpu_gain_error()), c.gpu_bound ? "GPU" : "host"});
  }
  return table.text();
}

std::string summaries_text(const WhatIfAccuracy& accuracy) {
  Table table({"of", "cases", "error of time", "largest", "of the gain", "largest", "of the GPU's gain", "largest",
               "signs, measured", "predicted", "order", "in range"});
  const auto off_by = [](double share) { return fmt::format("{:.1f}", 100 * share); };
  for (const WhatIfSummary& sum : summaries_of(accuracy)) {
    const bool gains = sum.measured_signs.all + sum.predicted_signs.all + sum.ranks.all > 0;
    table.add({sum.of, std::to_string(sum.cases), percent(sum.mean_error), percent(sum.largest_error),
               gains ? off_by(sum.mean_gain_error) : "-", gains ? off_by(sum.largest_gain_error) : "-",
               gains ? off_by(sum.mean_gpu_gain_error) : "-", gains ? off_by(sum.largest_gpu_gain_error) : "-",
               out_of(sum.measured_signs), out_of(sum.predicted_signs), out_of(sum.ranks), out_of(sum.covered)});
  }
  return table.text() +
         "Errors of gains in points of the base's time, the mean of absolute values and the largest. Signs: of gains "
         "and losses above 5 %,\nmeasured ones that were predicted with their sign, and predicted ones that were "
         "measured so. Order: of pairs of a model's cases that\nare 5 points apart. In range: measured within what "
         "the answer states.\n";
}

std::string scatter_text(const std::vector<HostScatter>& scatter) {
  std::string text;
  for (const HostScatter& of : scatter) {
    text += fmt::format("{}: {} host-bound runs that ask the same of the host took {:.1f} to {:.1f} ms ({:+.0f} %)\n",
                        of.model, of.runs, of.shortest_ms, of.longest_ms, 100 * (of.longest_ms / of.shortest_ms - 1));
  }
  return text.empty() ? text : "Noise of the host within these measurements:\n" + text;
}

void write(JsonWriter& json, std::string_view key, const Hits& hits) {
  json.key(key).begin_object().field("right", hits.right).field("of", hits.all).end_object();
}

void write(JsonWriter& json, const WhatIfSummary& sum) {
  json.begin_object()
      .field("of", sum.of)
      .field("cases", sum.cases)
      .field("mean_error", sum.mean_error)
      .field("largest_error", sum.largest_error)
      .field("mean_gpu_error", sum.mean_gpu_error)
      .field("mean_gain_error", sum.mean_gain_error)
      .field("largest_gain_error", sum.largest_gain_error)
      .field("mean_gpu_gain_error", sum.mean_gpu_gain_error)
      .field("largest_gpu_gain_error", sum.largest_gpu_gain_error);
  write(json, "measured_signs", sum.measured_signs);
  write(json, "predicted_signs", sum.predicted_signs);
  write(json, "ranks", sum.ranks);
  write(json, "covered", sum.covered);
  json.end_object();
}

void write(JsonWriter& json, const WhatIfCase& c) {
  json.begin_object()
      .field("model", c.model)
      .field("variant", c.variant)
      .field("kind", name_of(c.kind))
      .field("trained_on", c.trained_on)
      .field("gpu_bound", c.gpu_bound)
      .field("measured_base_ms", c.measured_base.ms)
      .field("measured_ms", c.measured.ms)
      .field("baseline_ms", c.predicted_base.ms)
      .field("predicted_ms", c.predicted.ms)
      .field("low_ms", c.low_ms)
      .field("high_ms", c.high_ms)
      .field("measured_base_gpu_ms", c.measured_base.gpu_ms)
      .field("measured_gpu_ms", c.measured.gpu_ms)
      .field("baseline_gpu_ms", c.predicted_base.gpu_ms)
      .field("predicted_gpu_ms", c.predicted.gpu_ms)
      .field("error", c.error())
      .field("measured_gain", c.measured_gain())
      .field("predicted_gain", c.predicted_gain())
      .field("gain_error", c.gain_error())
      .field("gpu_gain_error", c.gpu_gain_error())
      .end_object();
}

int64_t judged(const WhatIfAccuracy& accuracy) {
  return std::count_if(accuracy.cases.begin(), accuracy.cases.end(),
                       [](const WhatIfCase& c) { return c.kind != WhatIfKind::base; });
}

}  // namespace

WhatIfSummary summary_of(const std::vector<WhatIfCase>& cases, std::string of) {
  WhatIfSummary sum;
  sum.of = std::move(of);
  sum.cases = static_cast<int64_t>(cases.size());
  const auto add = [&](double error, double& mean, double& largest) {
    mean += std::abs(error) / static_cast<double>(cases.size());
    largest = std::max(largest, std::abs(error));
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const WhatIfCase& c = cases[i];
    double largest_gpu_error = 0;
    add(c.error(), sum.mean_error, sum.largest_error);
    add(c.gpu_error(), sum.mean_gpu_error, largest_gpu_error);
    add(c.gain_error(), sum.mean_gain_error, sum.largest_gain_error);
    add(c.gpu_gain_error(), sum.mean_gpu_gain_error, sum.largest_gpu_gain_error);
    count_sign(c.measured_gain(), c.predicted_gain(), sum.measured_signs);
    count_sign(c.predicted_gain(), c.measured_gain(), sum.predicted_signs);
    for (size_t k = i + 1; k < cases.size(); ++k) count_rank(c, cases[k], sum.ranks);
    ++sum.covered.all;
    sum.covered.right += c.low_ms <= c.measured.ms && c.measured.ms <= c.high_ms ? 1 : 0;
  }
  return sum;
}

std::vector<WhatIfSummary> summaries_of(const WhatIfAccuracy& accuracy) {
  const auto those = [&](std::string of, const std::function<bool(const WhatIfCase&)>& belongs) {
    std::vector<WhatIfCase> cases;
    std::copy_if(accuracy.cases.begin(), accuracy.cases.end(), std::back_inserter(cases), belongs);
    return summary_of(cases, std::move(of));
  };
  const auto optimized = [](const WhatIfCase& c) { return c.kind == WhatIfKind::variant; };
  return {those("optimizations", optimized),
          those("optimizations, models kept apart", [&](const WhatIfCase& c) { return optimized(c) && !c.trained_on; }),
          those("optimizations, GPU-bound", [&](const WhatIfCase& c) { return optimized(c) && c.gpu_bound; }),
          those("optimizations, host decides", [&](const WhatIfCase& c) { return optimized(c) && !c.gpu_bound; }),
          those("batch sizes", [](const WhatIfCase& c) { return c.kind == WhatIfKind::batch; }),
          those("bases", [](const WhatIfCase& c) { return c.kind == WhatIfKind::base; })};
}

std::string to_text(const WhatIfAccuracy& accuracy) {
  const std::vector<WhatIfCase>& cases = accuracy.cases;
  std::string text = fmt::format(
      "{}\n{}\n{}\n{}\n{}{}", accuracy.data, bases_text(cases), gains_text(cases, WhatIfKind::variant, "optimizations"),
      gains_text(cases, WhatIfKind::batch, "batch size"), summaries_text(accuracy), scatter_text(accuracy.scatter));
  text += fmt::format("{} cases judged, {} not\n", judged(accuracy), accuracy.problems.size());
  for (const std::string& problem : accuracy.problems) text += fmt::format("not judged: {}\n", problem);
  return text;
}

std::string to_json(const WhatIfAccuracy& accuracy) {
  JsonWriter json;
  json.begin_object()
      .field("schema", eval_schema("whatif", 2))
      .field("suite", "whatif")
      .field("data", accuracy.data)
      .field("judged", judged(accuracy))
      .field("not_judged", accuracy.problems.size())
      .key("summaries")
      .begin_array();
  for (const WhatIfSummary& sum : summaries_of(accuracy)) write(json, sum);
  json.end_array().key("host_scatter").begin_array();
  for (const HostScatter& of : accuracy.scatter) {
    json.begin_object()
        .field("model", of.model)
        .field("runs", of.runs)
        .field("shortest_ms", of.shortest_ms)
        .field("longest_ms", of.longest_ms)
        .end_object();
  }
  json.end_array().field("problems", accuracy.problems).key("cases").begin_array();
  for (const WhatIfCase& c : accuracy.cases) write(json, c);
  return json.end_array().end_object().take();
}

}  // namespace forerun
