// The clocks of a trace's devices against that of its host.
//
// Profilers convert a device's time stamps to the host's clock. Where the conversion is off, work begins before the call that
// launched it (negative queue delays), or ends after the host came back from waiting for it. Neither can be, so both
// tell by how much the clock is off: launches from below, syncs of the whole device from above. Left as it is, such a trace
// loses its launches or its waits, and what waits for the GPU turns into a constant.
#pragma once

#include "ingest/trace/trace.h"

namespace forerun {

// Moves the device's events so that nothing begins before its launch or outlasts the sync that waited for it, and says by how
// much in `trace.device_shift`; leaves a consistent file alone. A few launches that contradict all others count as wrong
// links, not as clocks. The events must be in order, and are afterwards.
void align_device_clocks(Trace& trace);

}  // namespace forerun
