#include "timeline/layers.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "ingest/trace/events_by_id.h"
#include "timeline/annotation_layers.h"

namespace forerun {
namespace {

constexpr std::string_view kModuleMark = "nn.Module: ";
constexpr std::string_view kBackwardMark = "autograd::engine::evaluate_function";

// What a name says about the phase of the event and of everything within it.
std::vector<StepPhase> phases_of_names(const Trace& trace) {
  std::vector<StepPhase> phases(trace.names.size(), StepPhase::none);
  for (size_t i = 0; i < phases.size(); ++i) {
    const std::string& name = trace.names[NameId(i)];
    const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
    if (has("Optimizer.") || has("phase:update") || has("## optimizer")) phases[i] = StepPhase::update;
    if (has("phase:forward") || has("## forward")) phases[i] = StepPhase::forward;
    if (has(kBackwardMark) || has("phase:backward") || has("## backward")) phases[i] = StepPhase::backward;
    if (has("enumerate(DataLoader)")) phases[i] = StepPhase::data;
  }
  return phases;
}

class LayerMapper {
 public:
  LayerMapper(const Trace& trace, const TraceLinks& links, const Iterations& iterations)
      : trace_(trace), links_(links), iterations_(iterations), name_phase_(phases_of_names(trace)) {
    layers_.outer_op.assign(trace.size(), kNoIndex);
    layers_.layer.assign(trace.size(), NameId());
    layers_.phase.assign(trace.size(), StepPhase::none);
    module_name_.assign(trace.names.size(), NameId());
  }

  EventLayers map() {
    for (EventIndex i = 0; i < trace_.size(); ++i) {
      if (is_host(trace_.events.kind[i])) come_down(i);
    }
    if (!layers_.modules) take_annotations();
    name_layers();
    for (EventIndex i = 0; i < trace_.size(); ++i) {
      if (!is_device_work(trace_.events.kind[i])) continue;
      const EventIndex from = links_.launch[i] != kNoIndex ? links_.launch[i] : links_.op[i];
      if (from == kNoIndex) continue;
      layers_.outer_op[i] = layers_.outer_op[from];
      layers_.layer[i] = layers_.layer[from];
      layers_.phase[i] = layers_.phase[from];
    }
    return std::move(layers_);
  }

 private:
  // Phase, outermost op and module from the event around it.
  void come_down(EventIndex i) {
    const TraceEvents& events = trace_.events;
    const EventIndex parent = links_.parent[i];
    if (parent != kNoIndex) {
      layers_.outer_op[i] = layers_.outer_op[parent];
      layers_.layer[i] = layers_.layer[parent];
      layers_.phase[i] = layers_.phase[parent];
    }
    const StepPhase said = name_phase_[events.name[i].value];
    const bool backward = events.kind[i] == EventKind::op && events.forward_thread[i] > 0;
    if (said != StepPhase::none) {
      layers_.phase[i] = said;
    } else if (backward) {
      layers_.phase[i] = StepPhase::backward;
    } else if (layers_.phase[i] == StepPhase::none && events.kind[i] == EventKind::op) {
      layers_.phase[i] = StepPhase::forward;
    }
    if (events.kind[i] == EventKind::op && layers_.outer_op[i] == kNoIndex) layers_.outer_op[i] = i;
    const NameId module = module_of(i);
    if (module.valid()) {
      layers_.layer[i] = module;
      layers_.modules = true;
    }
  }

  NameId module_of(EventIndex i) {
    const TraceEvents& events = trace_.events;
    if (events.kind[i] == EventKind::python) {
      NameId& known = module_name_[events.name[i].value];
      if (!known.valid()) {
        const std::string& name = trace_.name(i);
        if (name.rfind(kModuleMark, 0) != 0) return {};
        known = added(name.substr(kModuleMark.size()));
      }
      return known;
    }
    if (events.kind[i] != EventKind::op || events.detail[i] == kNoIndex) return {};
    return trace_.ops[events.detail[i]].module;
  }

  // Where the file has no modules: the annotation whose window each host event began in.
  void take_annotations() {
    AnnotationLayers found = annotation_layers(trace_, links_, iterations_, name_phase_, layers_.phase);
    if (found.names.empty()) return;
    layers_.annotations = true;
    std::vector<NameId> ids;
    for (std::string& name : found.names) ids.push_back(added(std::move(name)));
    for (EventIndex i = 0; i < trace_.size(); ++i) {
      if (found.layer[i] != kNoIndex) layers_.layer[i] = ids[found.layer[i]];
    }
  }

  // Layers of outermost forward ops where the file names none, then those of the backward pass.
  void name_layers() {
    const TraceEvents& events = trace_.events;
    EventsById by_sequence;                                    // forward events that have a layer
    std::unordered_map<uint32_t, uint32_t> counts;             // by name, within the iteration
    std::map<std::pair<uint32_t, uint32_t>, NameId> numbered;  // name and count -> layer
    const bool by_op = !layers_.modules && !layers_.annotations;
    std::vector<NameId> own(by_op ? trace_.size() : 0, NameId());  // by outermost op
    size_t boundary = 0;
    for (EventIndex i = 0; i < trace_.size(); ++i) {
      if (!is_host(events.kind[i]) || layers_.phase[i] == StepPhase::backward) continue;
      while (boundary < iterations_.boundaries.size() && iterations_.boundaries[boundary] <= events.start[i]) {
        ++boundary;
        counts.clear();
      }
      const EventIndex outer = layers_.outer_op[i];
      if (by_op && outer == i && layers_.phase[i] == StepPhase::forward) {
        const uint32_t number = counts[events.name[i].value]++;
        NameId& layer = numbered[{events.name[i].value, number}];
        if (!layer.valid()) layer = added(trace_.name(i) + "#" + std::to_string(number));
        own[i] = layer;
      }
      if (by_op && outer != kNoIndex) layers_.layer[i] = own[outer];
      if (events.sequence[i] >= 0 && layers_.layer[i].valid()) by_sequence.add(events.sequence[i], i);
    }
    by_sequence.close();
    for (EventIndex i = 0; i < trace_.size(); ++i) {
      if (!is_host(events.kind[i]) || layers_.phase[i] != StepPhase::backward) continue;
      const EventIndex parent = links_.parent[i];
      if (parent != kNoIndex && layers_.phase[parent] == StepPhase::backward) layers_.layer[i] = layers_.layer[parent];
      const EventIndex forward = events.sequence[i] >= 0 ? by_sequence.find(events.sequence[i]) : kNoIndex;
      if (forward != kNoIndex) layers_.layer[i] = layers_.layer[forward];
    }
  }

  NameId added(std::string name) {
    layers_.names.push_back(std::move(name));
    return NameId(trace_.names.size() + layers_.names.size() - 1);
  }

  const Trace& trace_;
  const TraceLinks& links_;
  const Iterations& iterations_;
  std::vector<StepPhase> name_phase_;
  std::vector<NameId> module_name_;  // by name of a Python event
  EventLayers layers_;
};

}  // namespace

EventLayers map_layers(const Trace& trace, const TraceLinks& links, const Iterations& iterations) {
  return LayerMapper(trace, links, iterations).map();
}

}  // namespace forerun
