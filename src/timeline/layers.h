// Which op, layer and phase each event of a trace belongs to, without any synchronisation.
//
// Phase and outermost op come down the nesting of host events. The layer of forward ops comes from what the file has:
// module events ("nn.Module: Linear_3"), the module hierarchy of ops, a user's annotations (annotation_layers.h), or else the
// outermost op counted within its iteration ("aten::conv2d#12"). Backward ops take the layer of the forward op with the
// same sequence number. Device work takes everything from the call that launched it.
#pragma once

#include <vector>

#include "timeline/iterations.h"
#include "timeline/task_graph.h"

namespace forerun {

struct EventLayers {
  std::vector<EventIndex> outer_op;  // kNoIndex where there is none
  std::vector<NameId> layer;         // of the trace's names, or of `names` behind them
  std::vector<StepPhase> phase;
  bool modules = false;            // the file names modules
  bool annotations = false;        // it does not, and a user's annotations stand for them
  std::vector<std::string> names;  // NameId(trace.names.size() + i)
};

EventLayers map_layers(const Trace& trace, const TraceLinks& links, const Iterations& iterations);

}  // namespace forerun
