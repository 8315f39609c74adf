#include "timeline/annotation_layers.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

namespace forerun {
namespace {

constexpr int64_t kFewestLayers = 5;   // with launches: "forward" and "backward" are no layers
constexpr double kLeastCovered = 0.8;  // of the forward pass's launches

// Marks that profilers, frameworks and communication libraries make themselves.
bool is_framework_mark(std::string_view name) {
  for (const std::string_view start :
       {"ProfilerStep", "Optimizer.", "nccl:", "c10d::", "record_param_comms", "PyTorch", "enumerate(DataLoader)",
        "DistributedDataParallel", "Torch-Compiled", "CompiledF"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

struct Window {
  EventIndex annotation = kNoIndex;
  int64_t end = 0;
};

// By host event the annotation of the window that opened last and is still open; kNoIndex elsewhere.
std::vector<EventIndex> innermost_windows(const Trace& trace, const std::vector<bool>& is_layer) {
  std::vector<EventIndex> innermost(trace.size(), kNoIndex);
  std::vector<Window> open;
  for (EventIndex i = 0; i < trace.size(); ++i) {  // in order of start
    if (!is_host(trace.events.kind[i])) continue;
    std::erase_if(open, [&](const Window& window) { return window.end <= trace.events.start[i]; });
    const bool marks = trace.events.kind[i] == EventKind::annotation && is_layer[trace.events.name[i].value];
    if (marks) open.push_back({i, trace.events.end(i)});
    if (!open.empty()) innermost[i] = open.back().annotation;
  }
  return innermost;
}

class AnnotationNames {
 public:
  AnnotationNames(const Trace& trace, const Iterations& iterations) : trace_(trace) {
    std::map<uint32_t, uint32_t> counts;  // by name, within the iteration
    size_t boundary = 0;
    for (EventIndex i = 0; i < trace.size(); ++i) {
      if (trace.events.kind[i] != EventKind::annotation) continue;
      for (; boundary < iterations.boundaries.size() && iterations.boundaries[boundary] <= trace.events.start[i];
           ++boundary) {
        counts.clear();
      }
      const uint32_t name = trace.events.name[i].value;
      const uint32_t number = counts[name]++;
      number_.emplace(i, number);
      most_[name] = std::max(most_[name], number);
    }
  }

  [[nodiscard]] std::string of(EventIndex annotation) const {
    const bool alone = most_.at(trace_.events.name[annotation].value) == 0;
    return alone ? trace_.name(annotation) : trace_.name(annotation) + "#" + std::to_string(number_.at(annotation));
  }

 private:
  const Trace& trace_;
  std::unordered_map<EventIndex, uint32_t> number_;  // of an annotation among those of its name
  std::map<uint32_t, uint32_t> most_;                // by name: the largest number
};

bool tell_layers(const Trace& trace, const TraceLinks& links, const std::vector<StepPhase>& phase,
                 const AnnotationLayers& found) {
  std::vector<bool> launches(found.names.size());  // by layer
  double covered = 0, all = 0;
  for (EventIndex i = 0; i < trace.size(); ++i) {
    const bool launch = is_cuda_call(trace.events.kind[i]) && !links.launched(i).empty();
    if (!launch || phase[i] != StepPhase::forward) continue;
    ++all;
    if (found.layer[i] == kNoIndex) continue;
    ++covered;
    launches[found.layer[i]] = true;
  }
  return std::count(launches.begin(), launches.end(), true) >= kFewestLayers && covered >= kLeastCovered * all;
}

}  // namespace

AnnotationLayers annotation_layers(const Trace& trace, const TraceLinks& links, const Iterations& iterations,
                                   const std::vector<StepPhase>& name_phase, const std::vector<StepPhase>& phase) {
  std::vector<bool> is_layer(trace.names.size());
  for (size_t i = 0; i < is_layer.size(); ++i) {
    is_layer[i] = name_phase[i] == StepPhase::none && !is_framework_mark(trace.names[NameId(i)]);
  }
  bool any = false;
  for (EventIndex i = 0; i < trace.size() && !any; ++i) {
    any = trace.events.kind[i] == EventKind::annotation && is_layer[trace.events.name[i].value];
  }
  if (!any) return {};
  const std::vector<EventIndex> innermost = innermost_windows(trace, is_layer);
  const AnnotationNames names(trace, iterations);
  AnnotationLayers found;
  found.layer.assign(trace.size(), kNoIndex);
  std::map<std::string, uint32_t> known;
  EventIndex last = kNoIndex;  // the window of the event before, mostly that of the next too
  uint32_t layer = kNoIndex;
  for (EventIndex i = 0; i < trace.size(); ++i) {
    if (innermost[i] == kNoIndex) continue;
    if (innermost[i] != last) {
      last = innermost[i];
      const auto [place, fresh] = known.emplace(names.of(last), static_cast<uint32_t>(found.names.size()));
      if (fresh) found.names.push_back(place->first);
      layer = place->second;
    }
    found.layer[i] = layer;
  }
  return tell_layers(trace, links, phase, found) ? found : AnnotationLayers{};
}

}  // namespace forerun
