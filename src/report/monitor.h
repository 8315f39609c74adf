// A monitor's Recording as text, as a picture and as a `resources/1` record (docs/distributed.md).
#pragma once

#include <string>

#include <vector>

#include "monitor/recording.h"

namespace forerun {

// A series as a picture shows it: its title has the figures that the table beside the picture has.
struct SeriesPanel {
  std::string title;
  const monitor::Series* series;
  double scale = 1;      // of values
  double threshold = 0;  // what separates burst from idle, scaled
};
std::string panels_svg(const std::vector<SeriesPanel>& panels, double seconds);

std::string to_text(const monitor::Recording& recording);
std::string to_json(const monitor::Recording& recording);  // one line
std::string to_svg(const monitor::Recording& recording);

}  // namespace forerun
