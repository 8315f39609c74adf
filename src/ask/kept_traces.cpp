#include "ask/kept_traces.h"

#include <algorithm>
#include <utility>

namespace forerun::ask {

Result<std::vector<std::span<const Trace>>> KeptTraces::read(const std::vector<std::vector<TraceFile>>& groups,
                                                             bool partial, const WorkControl& control) {
  std::vector<Group> wanted;
  for (const std::vector<TraceFile>& files : groups) {
    Group group{{}, partial, {}};
    for (const TraceFile& file : files) group.paths.push_back(file.path);
    const auto known = std::find_if(groups_.begin(), groups_.end(), [&](const Group& one) {
      return one.paths == group.paths && one.partial == partial && !one.traces.empty();
    });
    if (known != groups_.end()) group.traces = std::exchange(known->traces, {});
    wanted.push_back(std::move(group));
  }
  groups_ = std::move(wanted);
  std::vector<std::span<const Trace>> answer;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups_[i].traces.empty()) {
      auto traces = read_traces(groups[i], partial, control);
      if (!traces) return traces.error();
      groups_[i].traces = std::move(*traces);
    }
    answer.emplace_back(groups_[i].traces);
  }
  return answer;
}

const Trace* KeptTraces::find(const std::string& path) const {
  for (const Group& group : groups_) {
    for (const Trace& trace : group.traces) {
      if (trace.file == path) return &trace;
    }
  }
  return nullptr;
}

}  // namespace forerun::ask
