#include "api/monitor.h"

#include <algorithm>
#include <chrono>

namespace forerun {

Result<MonitorAnswer> monitor_command(const MonitorRequest& request, const WorkControl& control) {
  MonitorRequest asked = request;
  if (control.stop.stop_possible()) asked.stop = control.stop;
  if (control.budget.deadline) {
    const std::chrono::duration<double> left = *control.budget.deadline - std::chrono::steady_clock::now();
    const double seconds = std::max(left.count(), 1e-3);
    asked.seconds = asked.seconds > 0 ? std::min(asked.seconds, seconds) : seconds;
  }
  return monitor::record(asked);
}

}  // namespace forerun
