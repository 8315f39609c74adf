// How long the host takes without the profiler.
//
// A profiled iteration tells the order and the shares of host work but hardly its speed: what the profiler adds varies from
// 1.2 to 1.6 times, and hosts drift by as much within minutes (data/h200: between runs on one machine a few minutes apart,
// a profiled time that is 10 % above the usual goes with 2 % more in the next unprofiled run). So the host's time is that
// of the host model (cost/host) for the iteration, phase by phase, and the trace only shifts it: by a fifth of what lies
// within the usual scatter, and by all that goes beyond, which is another machine.
#pragma once

#include "whatif/editable_iteration.h"

namespace forerun::whatif {

// Profiled host time over modelled unprofiled host time, as a logarithm: mean and twice the standard deviation over the
// 302 host-bound runs of data/h200 that the host model was fitted to; and what of a deviation persists to a later run.
constexpr double kProfiledOverModel = 0.38;
constexpr double kUsualScatter = 0.38;
constexpr double kPersistent = 0.2;

// Logarithm of what the host model's times are to be multiplied with.
double host_shift(double profiled_over_model);

// Sets the host's tasks of each phase to the modelled times; EditableIteration::remove_profiler where there is no model to ask.
Status take_out_profiler(EditableIteration& edited);

}  // namespace forerun::whatif
