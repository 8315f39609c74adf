#include "cluster/breakdown.h"

#include <fmt/format.h>

#include <bit>
#include <map>

#include "base/nearest.h"
#include "base/statistics.h"

namespace forerun::cluster {
namespace {

constexpr BreakdownBy kBreakdowns[] = {BreakdownBy::user, BreakdownBy::group, BreakdownBy::size};

// Which row a job belongs to. The unsigned form of -1, that none is stated, stands behind all others.
uint32_t breakdown_row(const Job& job, BreakdownBy by) {
  switch (by) {
    case BreakdownBy::user: return static_cast<uint32_t>(job.user);
    case BreakdownBy::group: return static_cast<uint32_t>(job.virtual_cluster);
    case BreakdownBy::size: break;
  }
  return static_cast<uint32_t>(std::bit_width(static_cast<uint32_t>(job.gpus - 1)));  // up to 2^row GPUs
}

std::string size_text(uint32_t row) {
  const int64_t most = int64_t{1} << row;
  const int64_t least = most / 2 + 1;
  return least >= most ? std::to_string(most) : fmt::format("{}-{}", least, most);
}

std::string name_of_row(uint32_t row, const Workload& workload, BreakdownBy by) {
  if (by == BreakdownBy::size) return size_text(row);
  const std::vector<std::string>& names = by == BreakdownBy::user ? workload.users : workload.virtual_clusters;
  return row < names.size() ? names[row] : "";
}

struct GroupTimes {
  std::vector<double> jcts, waits, slowdowns;
  int64_t unfinished = 0;
};

}  // namespace

Result<BreakdownBy> parse_breakdown(const std::string& text) {
  std::vector<std::string> names;
  for (const BreakdownBy by : kBreakdowns) {
    if (text == name_of(by)) return by;
    names.emplace_back(name_of(by));
  }
  return Error{fmt::format("there is no breakdown by '{}'", text), "--by", did_you_mean(text, names)};
}

const char* name_of(BreakdownBy by) {
  switch (by) {
    case BreakdownBy::user: return "user";
    case BreakdownBy::group: return "group";
    case BreakdownBy::size: return "size";
  }
  return "";
}

std::vector<BreakdownRow> breakdown_of(const Schedule& schedule, const Workload& workload, BreakdownBy by) {
  std::map<uint32_t, GroupTimes> groups;
  for (JobIndex job = 0; job < workload.jobs.size(); ++job) {
    GroupTimes& times = groups[breakdown_row(workload.jobs[job], by)];
    if (schedule.finish[job] == kNever) {
      ++times.unfinished;
      continue;
    }
    times.jcts.push_back(seconds(completion_time(schedule, workload, job)));
    times.waits.push_back(seconds(waiting_time(schedule, workload, job)));
    times.slowdowns.push_back(slowdown(schedule, workload, job));
  }
  std::vector<BreakdownRow> rows;
  for (auto& [row, times] : groups) {
    BreakdownRow figures{.name = name_of_row(row, workload, by),
                         .jobs = static_cast<double>(times.jcts.size()),
                         .unfinished = static_cast<double>(times.unfinished)};
    if (figures.jobs > 0) {
      figures.mean_jct = mean(times.jcts);
      figures.mean_wait = mean(times.waits);
      figures.mean_slowdown = mean(times.slowdowns);
      figures.median_jct = quantile_in_place(times.jcts, 0.5);
      figures.p95_jct = quantile_in_place(times.jcts, 0.95);
      figures.p95_wait = quantile_in_place(times.waits, 0.95);
    }
    rows.push_back(std::move(figures));
  }
  return rows;
}

}  // namespace forerun::cluster
