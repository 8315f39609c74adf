// simulate() the slow and obvious way, to check it against: each step looks at every task anew.
#pragma once

#include "timeline/simulator.h"

namespace forerun {

Simulation reference_simulate(const TaskGraph& graph, const Schedule& schedule = earliest_start);

}  // namespace forerun
