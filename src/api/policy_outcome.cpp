#include "api/policy_outcome.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

namespace forerun {

using cluster::Metrics;

namespace {

// Student's t for a two-sided 95 % interval, by degrees of freedom from 1.
double student_t(size_t freedom) {
  constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                               2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};
  return freedom <= std::size(kTable) ? kTable[freedom - 1] : 1.96 + 2.4 / static_cast<double>(freedom);
}

}  // namespace

double PolicyOutcome::mean_of(double (*figure)(const Metrics&)) const {
  double sum = 0;
  for (const Metrics& run : runs) sum += figure(run);
  return runs.empty() ? 0 : sum / static_cast<double>(runs.size());
}

double PolicyOutcome::half_width(double (*figure)(const Metrics&)) const {
  if (runs.size() < 2) return 0;
  const auto count = static_cast<double>(runs.size());
  const double middle = mean_of(figure);
  double squares = 0;
  for (const Metrics& run : runs) squares += (figure(run) - middle) * (figure(run) - middle);
  return student_t(runs.size() - 1) * std::sqrt(squares / (count - 1) / count);
}

Metrics PolicyOutcome::mean() const {
  Metrics mean;
  const auto fill = [&](auto Metrics::*field) {
    double sum = 0;
    for (const Metrics& run : runs) sum += static_cast<double>(run.*field);
    using Value = std::remove_reference_t<decltype(mean.*field)>;
    mean.*field = static_cast<Value>(sum / static_cast<double>(std::max<size_t>(runs.size(), 1)));
  };
  for (auto field :
       {&Metrics::mean_jct, &Metrics::median_jct, &Metrics::p95_jct, &Metrics::p99_jct, &Metrics::mean_wait,
        &Metrics::median_wait, &Metrics::p95_wait, &Metrics::p99_wait, &Metrics::makespan, &Metrics::total_tardiness,
        &Metrics::mean_tardiness, &Metrics::mean_slowdown, &Metrics::p99_slowdown, &Metrics::mean_fairness,
        &Metrics::worst_fairness, &Metrics::utilisation, &Metrics::fragmentation}) {
    fill(field);
  }
  for (auto field : {&Metrics::jobs, &Metrics::unfinished, &Metrics::with_deadline, &Metrics::late,
                     &Metrics::preemptions, &Metrics::failures}) {
    fill(field);
  }
  return mean;
}

double PolicyOutcome::jct_half_width() const {
  return half_width([](const Metrics& run) { return run.mean_jct; });
}

void PolicyOutcome::add_breakdowns(std::vector<Breakdown> run) {
  using cluster::BreakdownRow;
  ++broken_down_;
  if (broken_down_ == 1) {
    breakdowns = std::move(run);
    return;
  }
  const double share = 1.0 / static_cast<double>(broken_down_);
  for (size_t i = 0; i < breakdowns.size(); ++i) {
    for (size_t row = 0; row < breakdowns[i].rows.size(); ++row) {  // the same jobs, so the same rows
      BreakdownRow& mean = breakdowns[i].rows[row];
      const BreakdownRow& added = run[i].rows[row];
      for (auto field :
           {&BreakdownRow::jobs, &BreakdownRow::unfinished, &BreakdownRow::mean_jct, &BreakdownRow::median_jct,
            &BreakdownRow::p95_jct, &BreakdownRow::mean_wait, &BreakdownRow::p95_wait, &BreakdownRow::mean_slowdown}) {
        mean.*field += (added.*field - mean.*field) * share;
      }
    }
  }
}

std::optional<double> PolicyOutcome::loss() const {
  if (!perfect || perfect->mean_jct <= 0) return std::nullopt;
  return mean().mean_jct / perfect->mean_jct - 1;
}

}  // namespace forerun
