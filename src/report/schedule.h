// What policies made of a workload, as text, JSON and a picture.
#pragma once

#include <string>

#include "api/schedule.h"

namespace forerun {

std::string to_text(const ScheduleReport& report);
// One object for one policy, a list for several.
std::string to_json(const ScheduleReport& report);
// Distribution of completion times, utilisation over time, and a Gantt chart of the first jobs under the first policy.
// The outcomes must have their `first` schedules, with segments.
std::string to_svg(const ScheduleReport& report, const cluster::Workload& workload, const cluster::Cluster& cluster);

}  // namespace forerun
