// Draws a ScheduleReport: completion times, utilisation over time, and the first jobs as bars.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/statistics.h"
#include "report/schedule.h"
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
constexpr const char* kColours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                                    "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f"};

double plot_width() { return kWidth - kLeft - kRight; }

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      result += c;
    }
  }
  return result;
}

std::string label(double x, double y, const std::string& text, const char* anchor = "start") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(text));
}

std::string frame(double top, double height, const std::string& title) {
  return label(kLeft, top - 8, title) +
         fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#999\"/>\n", kLeft, top,
                     plot_width(), height);
}

std::string grid_line(double x1, double y1, double x2, double y2) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#eee\"/>\n", x1, y1, x2,
                     y2);
}

// 0, 25, ... 100 % up the left side.
std::string percent_axis(double top) {
  std::string text;
  for (int i = 0; i <= 4; ++i) {
    const double y = top + kPanel * (1 - i / 4.0);
    if (i > 0 && i < 4) text += grid_line(kLeft, y, kLeft + plot_width(), y);
    text += label(kLeft - 6, y + 4, fmt::format("{} %", 25 * i), "end");
  }
  return text;
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

// Round numbers along the bottom, four to eight of them.
std::string time_axis(Time last, double top, double height) {
  const double longest = seconds(last) / unit_for(seconds(last)).seconds;
  double step = std::pow(10, std::floor(std::log10(longest / 4)));
  for (const double factor : {2.0, 2.5, 2.0}) {
    if (longest / step > 8) step *= factor;
  }
  std::string text;
  for (int i = 0; i * step <= longest; ++i) {
    const double x = kLeft + plot_width() * i * step / longest;
    if (i > 0) text += grid_line(x, top, x, top + height);
    text += label(x, top + height + 16, fmt::format("{:g}", i * step), "middle");
  }
  return text;
}

std::string curve(const std::vector<std::pair<double, double>>& points, size_t colour) {
  std::string text = fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"",
                                 kColours[colour % std::size(kColours)]);
  for (const auto& [x, y] : points) text += fmt::format("{:.1f},{:.1f} ", x, y);
  return text + "\"/>\n";
}

std::vector<double> completion_times(const cluster::Schedule& schedule, const Workload& workload) {
  std::vector<double> times;
  for (JobIndex job = 0; job < workload.jobs.size(); ++job) {
    if (schedule.finish[job] != kNever) times.push_back(seconds(schedule.finish[job] - workload.jobs[job].arrival));
  }
  std::sort(times.begin(), times.end());
  return times;
}

std::string completion_panel(const ScheduleReport& report, const Workload& workload, double top) {
  std::string text = percent_axis(top);
  double longest = 10;
  double shortest = 1e18;
  std::vector<std::vector<double>> all;
  for (const PolicyOutcome& outcome : report.outcomes) {
    all.push_back(completion_times(outcome.first, workload));
    if (all.back().empty()) continue;
    longest = std::max(longest, all.back().back());
    shortest = std::min(shortest, all.back().front());
  }
  const double first = std::floor(std::log10(std::clamp(shortest, 1.0, longest / 10)));
  const double decades = std::max(std::ceil(std::log10(longest)) - first, 1.0);
  for (int i = 0; i <= static_cast<int>(decades); ++i) {
    const double x = kLeft + plot_width() * i / decades;
    if (i > 0 && i < static_cast<int>(decades)) text += grid_line(x, top, x, top + kPanel);
    text += label(x, top + kPanel + 16, grouped(std::llround(std::pow(10, first + i))), "middle");
  }
  text += frame(top, kPanel, "share of jobs completed within so many seconds of their submission");
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<std::pair<double, double>> points;
    const size_t step = std::max<size_t>(all[i].size() / kPoints, 1);
    for (size_t j = 0; j < all[i].size(); j = j + 1 == all[i].size() ? j + 1 : std::min(j + step, all[i].size() - 1)) {
      const double x = std::max(std::log10(std::max(all[i][j], 1.0)) - first, 0.0) / decades;
      const double y = static_cast<double>(j + 1) / static_cast<double>(all[i].size());
      points.emplace_back(kLeft + plot_width() * x, top + kPanel * (1 - y));
    }
    text += curve(points, i);
    text += fmt::format("<g fill=\"{}\">{}</g>\n", kColours[i % std::size(kColours)],
                        label(kLeft + 10, top + 18 + 15 * static_cast<double>(i), report.outcomes[i].policy));
  }
  return text;
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

std::string use_panel(const ScheduleReport& report, double gpus, double top) {
  const Time last = last_end(report);
  std::string text = percent_axis(top) + time_axis(last, top, kPanel);
  text += frame(top, kPanel, fmt::format("share of GPUs in use ({})", unit_for(seconds(last)).name));
  for (size_t i = 0; i < report.outcomes.size(); ++i) {
    const std::vector<double> used = used_shares(report.outcomes[i].first, last, gpus);
    std::vector<std::pair<double, double>> points;
    for (size_t j = 0; j < used.size(); ++j) {
      points.emplace_back(kLeft + plot_width() * static_cast<double>(j) / kPoints,
                          top + kPanel * (1 - std::min(used[j], 1.0)));
    }
    text += curve(points, i);
  }
  return text;
}

std::string bar(double begin, double end, double y, double height, const char* colour) {
  return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", begin, y,
                     std::max(end - begin, 0.3), height, colour);
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

std::string gantt_legend(const cluster::Cluster& cluster, double top) {
  std::string text;
  double x = kLeft + plot_width();
  for (size_t type = cluster.pools.size(); type-- > 0 && cluster.pools.size() > 1;) {
    text += fmt::format("<g fill=\"{}\">{}</g>\n", kColours[type % std::size(kColours)],
                        label(x, top - 8, cluster.pools[type].type, "end"));
    x -= 12 + 7 * static_cast<double>(cluster.pools[type].type.size());
  }
  return text;
}

std::string gantt_panel(const ScheduleReport& report, const Workload& workload, const cluster::Cluster& cluster,
                        double top, double height) {
  const PolicyOutcome& outcome = report.outcomes.front();
  const size_t jobs = std::min(kGanttJobs, workload.jobs.size());
  const Time last = gantt_end(outcome.first, jobs);
  const auto& ends = outcome.first.finish;
  const bool cut = std::any_of(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(jobs),
                               [&](Time end) { return end != kNever && end > last; });
  const auto x = [&](Time t) {
    return kLeft + plot_width() * static_cast<double>(std::min(t, last).value) / static_cast<double>(last.value);
  };
  std::string text = time_axis(last, top, height);
  const double row = height / static_cast<double>(std::max<size_t>(jobs, 1));
  for (size_t job = 0; job < jobs; ++job) {
    const double y = top + row * static_cast<double>(job);
    const std::string name = workload.name_of(static_cast<JobIndex>(job));
    text += bar(x(workload.jobs[job].arrival), x(outcome.first.finish[job]), y, row * 0.8, "#ddd");
    text += fmt::format("<g font-size=\"7\">{}</g>\n",
                        label(kLeft - 4, y + row * 0.8, name.size() > 12 ? name.substr(0, 11) + "~" : name, "end"));
  }
  for (const cluster::Segment& segment : outcome.first.segments) {
    if (segment.job >= jobs) continue;
    text += bar(x(segment.begin), x(segment.end), top + row * static_cast<double>(segment.job), row * 0.8,
                kColours[segment.type % std::size(kColours)]);
  }
  text += frame(top, height,
                fmt::format("the first {} jobs under {} ({}); waiting: grey{}", jobs, outcome.policy,
                            unit_for(seconds(last)).name, cut ? "; the longest are cut off" : ""));
  return text + gantt_legend(cluster, top);
}

}  // namespace

std::string to_svg(const ScheduleReport& report, const Workload& workload, const cluster::Cluster& cluster) {
  const double gantt = 8.0 * static_cast<double>(std::min(kGanttJobs, workload.jobs.size()));
  const double height = 3 * kGap + 2 * kPanel + gantt + 30;
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kWidth, height);
  text += completion_panel(report, workload, kGap - 20);
  text += use_panel(report, static_cast<double>(cluster.gpus()), 2 * kGap + kPanel - 20);
  text += gantt_panel(report, workload, cluster, 3 * kGap + 2 * kPanel - 20, gantt);
  return text + "</svg>\n";
}

}  // namespace forerun
