// A MemoryTimeline as a picture (SVG), as counters for a trace viewer and as a snapshot that PyTorch's memory_viz page
// opens.
#pragma once

#include <string>

#include "memory/memory_timeline.h"

namespace forerun {

// A picture of its own, 1200 by 620.
std::string to_svg(const MemoryTimeline& timeline);

// Chrome's trace event format: one counter track by kind and one for reserved memory, slices for the phases. An op is a
// microsecond long.
std::string to_chrome_counters(const MemoryTimeline& timeline);

// A pickle of what torch.cuda.memory._snapshot() gives: all events from building the model on, frames that name op, module
// and phase, and the segments at the end. https://pytorch.org/memory_viz shows it.
std::string to_snapshot(const Graph& graph, const MemoryLog& log);

}  // namespace forerun
