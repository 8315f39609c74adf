// "What does this command do to the GPU and the network?": the question of `forerun monitor`. The stage monitor/ answers it.
#pragma once

#include "base/work_control.h"
#include "monitor/recording.h"

namespace forerun {

using MonitorRequest = monitor::RecordingOptions;
using MonitorAnswer = monitor::Recording;

// Records until the command or the time ends. A recording is whole at any moment, so that a stop of `control`, or the end
// of its budget of time, ends the recording and the command and gives what was seen.
Result<MonitorAnswer> monitor_command(const MonitorRequest& request, const WorkControl& control = {});

}  // namespace forerun
