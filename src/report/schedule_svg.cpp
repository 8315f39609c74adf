// Draws a ScheduleReport: completion times, utilisation over time, and the first jobs as bars.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/statistics.h"
#include "report/schedule.h"
#include "report/svg.h"
#include "report/table.h"

namespace forerun {
namespace {

using cluster::JobIndex;
using cluster::kNever;
using cluster::seconds;
using cluster::Time;
using cluster::Workload;

constexpr double kWidth = 900, kLeft = 70, kRight = 45, kPanel = 220, kGap = 60;
constexpr size_t kGanttJobs = 60;
constexpr size_t kPoints = 400;

svg::Plot schedule_panel(double top, double height = kPanel) {
  return {.left = kLeft, .top = top, .width = kWidth - kLeft - kRight, .height = height};
}

// 0, 25, ... 100 % up the left side.
void percent_axis(svg::Picture& picture, const svg::Plot& plot) {
  for (int i = 0; i <= 4; ++i) picture.tick_left(plot, i / 4.0, fmt::format("{} %", 25 * i));
}

struct TimeUnit {
  const char* name;
  double seconds;
};

TimeUnit unit_for(double longest) {
  if (longest > 3 * 86400) return {"days", 86400};
  if (longest > 3 * 3600) return {"hours", 3600};
  return longest > 3 * 60 ? TimeUnit{"minutes", 60} : TimeUnit{"seconds", 1};
}

void time_axis(svg::Picture& picture, const svg::Plot& plot, Time last) {
  const double longest = seconds(last) / unit_for(seconds(last)).seconds;
  for (const double tick : svg::round_ticks(longest))
    picture.tick_below(plot, tick / longest, fmt::format("{:g}", tick));
}

std::vector<double> completion_times(const cluster::Schedule& schedule, const Workload& workload) {
  std::vector<double> times;
  for (JobIndex job = 0; job < workload.jobs.size(); ++job) {
    if (schedule.finish[job] != kNever) times.push_back(seconds(schedule.finish[job] - workload.jobs[job].arrival));
  }
  std::sort(times.begin(), times.end());
  return times;
}

// Seconds on a logarithmic axis, from one power of ten to another.
struct Decades {
  double first = 0, count = 1;  // exponents
  [[nodiscard]] double share(double time) const {
    return std::max(std::log10(std::max(time, 1.0)) - first, 0.0) / count;
  }
};

Decades decades_of(const std::vector<std::vector<double>>& sorted) {
  double longest = 10, shortest = 1e18;
  for (const std::vector<double>& times : sorted) {
    if (times.empty()) continue;
    longest = std::max(longest, times.back());
    shortest = std::min(shortest, times.front());
  }
  const double first = std::floor(std::log10(std::clamp(shortest, 1.0, longest / 10)));
  return {first, std::max(std::ceil(std::log10(longest)) - first, 1.0)};
}

void completion_panel(svg::Picture& picture, const ScheduleReport& report, const Workload& workload, double top) {
  const svg::Plot plot = schedule_panel(top);
  std::vector<std::vector<double>> all;
  for (const PolicyOutcome& outcome : report.outcomes) all.push_back(completion_times(outcome.first, workload));
  const Decades decades = decades_of(all);
  percent_axis(picture, plot);
  for (int i = 0; i <= static_cast<int>(decades.count); ++i) {
    picture.tick_below(plot, i / decades.count, grouped(std::llround(std::pow(10, decades.first + i))));
  }
  picture.frame(plot, "share of jobs completed within so many seconds of their submission");
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<svg::Point> points;
    const size_t step = std::max<size_t>(all[i].size() / kPoints, 1);
    for (size_t j = 0; j < all[i].size(); j = j + 1 == all[i].size() ? j + 1 : std::min(j + step, all[i].size() - 1)) {
      const double y = static_cast<double>(j + 1) / static_cast<double>(all[i].size());
      points.emplace_back(plot.x(decades.share(all[i][j])), plot.y(y));
    }
    picture.curve(points, svg::line_of(i));
    picture.legend_line({kLeft + 10, top + 20 + 16 * static_cast<double>(i)}, svg::line_of(i),
                        report.outcomes[i].policy);
  }
}

Time last_end(const ScheduleReport& report) {
  Time last(1);
  for (const PolicyOutcome& outcome : report.outcomes) {
    for (const Time finish : outcome.first.finish) {
      if (finish != kNever) last = std::max(last, finish);
    }
  }
  return last;
}

// The mean share of GPUs in use in each of kPoints stretches of time.
std::vector<double> used_shares(const cluster::Schedule& schedule, Time last, double gpus) {
  std::vector<double> used(kPoints, 0);
  const double stretch = static_cast<double>(last.value) / kPoints;
  for (const cluster::Segment& segment : schedule.segments) {
    const double begin = static_cast<double>(segment.begin.value) / stretch;
    const double end = static_cast<double>(segment.end.value) / stretch;
    const auto last_point = std::min(static_cast<size_t>(end), kPoints - 1);
    for (auto i = std::min(static_cast<size_t>(begin), kPoints - 1); i <= last_point; ++i) {
      const auto at = static_cast<double>(i);
      used[i] += std::max(std::min(end, at + 1) - std::max(begin, at), 0.0) * segment.gpus / gpus;
    }
  }
  return used;
}

void use_panel(svg::Picture& picture, const ScheduleReport& report, double gpus, double top) {
  const svg::Plot plot = schedule_panel(top);
  const Time last = last_end(report);
  percent_axis(picture, plot);
  time_axis(picture, plot, last);
  picture.frame(plot, fmt::format("share of GPUs in use ({})", unit_for(seconds(last)).name));
  for (size_t i = 0; i < report.outcomes.size(); ++i) {
    const std::vector<double> used = used_shares(report.outcomes[i].first, last, gpus);
    std::vector<svg::Point> points;
    for (size_t j = 0; j < used.size(); ++j) {
      points.emplace_back(plot.x(static_cast<double>(j) / kPoints), plot.y(std::min(used[j], 1.0)));
    }
    picture.curve(points, svg::line_of(i));
  }
}

// When the last of these jobs ends, or most of them where a few take much longer than all others.
Time gantt_end(const cluster::Schedule& schedule, size_t jobs) {
  std::vector<Time> ends;
  for (size_t job = 0; job < jobs; ++job) {
    if (schedule.finish[job] != kNever) ends.push_back(schedule.finish[job]);
  }
  if (ends.empty()) return Time(1);
  std::sort(ends.begin(), ends.end());
  const Time most = sorted_quantile_lower(ends, 0.9);
  const Time cut(static_cast<int64_t>(static_cast<double>(most.value) * 1.2));
  return std::max(ends.back() > Time(3 * most.value) ? cut : ends.back(), Time(1));
}

void gantt_legend(svg::Picture& picture, const cluster::Cluster& cluster, const svg::Plot& plot) {
  double x = plot.right();
  for (size_t type = cluster.pools.size(); type-- > 0 && cluster.pools.size() > 1;) {
    x -= 34 + 7 * static_cast<double>(cluster.pools[type].type.size());
    picture.legend_line({x, plot.top - 8}, {.colour = svg::colour(type), .width = 0}, cluster.pools[type].type);
  }
}

// Bars of the first jobs: grey from submission to end, in the colour of the GPU type while they run.
void gantt_bars(svg::Picture& picture, const cluster::Schedule& schedule, const Workload& workload,
                const svg::Plot& plot, Time last) {
  const size_t jobs = std::min(kGanttJobs, workload.jobs.size());
  const double row = plot.height / static_cast<double>(std::max<size_t>(jobs, 1));
  const auto bar = [&](size_t job, Time begin, Time end, const char* colour) {
    const auto x = [&](Time t) {
      return plot.x(static_cast<double>(std::min(t, last).value) / static_cast<double>(last.value));
    };
    picture.box({.left = x(begin),
                 .top = plot.top + row * static_cast<double>(job),
                 .width = std::max(x(end) - x(begin), 0.3),
                 .height = row * 0.8},
                colour);
  };
  for (size_t job = 0; job < jobs; ++job) {
    bar(job, workload.jobs[job].arrival, schedule.finish[job], "#dddddd");
    picture.text(plot.left - 4, plot.top + row * (static_cast<double>(job) + 0.8),
                 svg::shortened(workload.name_of(static_cast<JobIndex>(job)), 12), {.anchor = "end", .size = 7});
  }
  for (const cluster::Segment& segment : schedule.segments) {
    if (segment.job < jobs) bar(segment.job, segment.begin, segment.end, svg::colour(segment.type));
  }
}

void gantt_panel(svg::Picture& picture, const ScheduleReport& report, const Workload& workload,
                 const cluster::Cluster& cluster, const svg::Plot& plot) {
  const PolicyOutcome& outcome = report.outcomes.front();
  const size_t jobs = std::min(kGanttJobs, workload.jobs.size());
  const Time last = gantt_end(outcome.first, jobs);
  const auto& ends = outcome.first.finish;
  const bool cut = std::any_of(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(jobs),
                               [&](Time end) { return end != kNever && end > last; });
  time_axis(picture, plot, last);
  gantt_bars(picture, outcome.first, workload, plot, last);
  picture.frame(plot, fmt::format("the first {} jobs under {} ({}); waiting: grey{}", jobs, outcome.policy,
                                  unit_for(seconds(last)).name, cut ? "; the longest are cut off" : ""));
  gantt_legend(picture, cluster, plot);
}

}  // namespace

std::string to_svg(const ScheduleReport& report, const Workload& workload, const cluster::Cluster& cluster) {
  const double gantt = 8.0 * static_cast<double>(std::min(kGanttJobs, workload.jobs.size()));
  svg::Picture picture(kWidth, 3 * kGap + 2 * kPanel + gantt + 30);
  completion_panel(picture, report, workload, kGap - 20);
  use_panel(picture, report, static_cast<double>(cluster.gpus()), 2 * kGap + kPanel - 20);
  gantt_panel(picture, report, workload, cluster, schedule_panel(3 * kGap + 2 * kPanel - 20, gantt));
  return picture.document();
}

}  // namespace forerun
