// Layers from time stamps alone: which of a user's annotations each host event began in.
//
// Source: Daydream's mapping of kernels to layers without synchronisation. A framework that is instrumented to note when each
// layer's host code begins and ends, here by `record_function("layer1")` around it, gives a window of host time; the
// launches that begin in a window are the layer's, and so are their kernels, by correlation id. Of windows in one another
// the one that opened last counts, on whatever thread. A name that comes several times an iteration is numbered
// ("attention#3"). Annotations that leave launches of the forward pass out, or are few, mark something else than layers.
#pragma once

#include <string>
#include <vector>

#include "timeline/iterations.h"
#include "timeline/task_graph.h"

namespace forerun {

struct AnnotationLayers {
  std::vector<uint32_t> layer;     // by event: an index into `names`; kNoIndex: none, or not a host event
  std::vector<std::string> names;  // empty where the annotations tell no layers
};

// `name_phase`: what names say of the phase, which makes them marks of phases and not of layers; `phase`: of each event.
AnnotationLayers annotation_layers(const Trace& trace, const TraceLinks& links, const Iterations& iterations,
                                   const std::vector<StepPhase>& name_phase, const std::vector<StepPhase>& phase);

}  // namespace forerun
