// What makes two measurements repeats of each other.
#pragma once

#include <string>

#include "graph/training_run.h"

namespace forerun {

// Everything that decides what is run, but not on which day. Empty for a user's own model: too little is known of it.
std::string configuration_of(const TrainingRun& run);

// What is trained on what, in which precision: the same for runs that differ in the optimizer, the layout or the machine alone.
// Of a user's own model its id.
std::string workload_of(const TrainingRun& run);

}  // namespace forerun
