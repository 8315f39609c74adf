// Single simulations of a schedule as JSON and back, so that shards of it can be put together to the report that one process
// gives.
#pragma once

#include <string>

#include "api/schedule.h"

namespace forerun {

// What all shards know: the report without its outcomes, and which simulations there are.
struct ScheduleHeading {
  ScheduleReport report;
  SimulationPlan plan;
};
std::string to_json(const ScheduleHeading& heading);
// `where` names what is read in Errors.
Result<ScheduleHeading> read_schedule_heading(const std::string& json, const std::string& where);

std::string to_json(const SimulatedRun& run);
Result<SimulatedRun> read_simulated_run(const std::string& json, const std::string& where);

}  // namespace forerun
