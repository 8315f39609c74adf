// What policies made of a workload, as text, JSON and a picture.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "api/schedule.h"

namespace forerun {

std::string to_text(const ScheduleReport& report);
// One object for one policy, a list for several.
std::string to_json(const ScheduleReport& report);
// A heading, and a row for every job under every policy with the first seed, in order of submission, handed to `write` piece
// by piece. The outcomes must have their `first` schedules, with segments. The first Error of `write` ends it.
Status write_jobs_csv(const ScheduleAnswer& answer, const std::function<Status(std::string_view)>& write);
// Distribution of completion times, utilisation over time, and a Gantt chart of the first jobs under the first policy.
// The outcomes must have their `first` schedules, with segments.
std::string to_svg(const ScheduleReport& report, const cluster::Workload& workload, const cluster::Cluster& cluster);

}  // namespace forerun
