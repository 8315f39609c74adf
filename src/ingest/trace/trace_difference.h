// Where two traces differ, to the last bit: for tests and fuzzers of readers, which compare ways to the same trace.
#pragma once

#include <string>

#include "ingest/trace/trace.h"

namespace forerun {

// The first part that differs; empty where none does. The file's name does not count.
inline std::string difference(const Trace& a, const Trace& b) {
  if (a.gpu != b.gpu || a.backend != b.backend || a.names_process_group != b.names_process_group) return "header";
  if (a.rank != b.rank || a.world_size != b.world_size) return "rank";
  if (a.time_base != b.time_base || a.device_shift != b.device_shift) return "clock";
  if (a.names.size() != b.names.size()) return "names";
  for (size_t i = 0; i < a.names.size(); ++i) {
    if (a.names[NameId(i)] != b.names[NameId(i)]) return "names";
  }
  if (a.lanes != b.lanes) return "lanes";
  if (a.ops != b.ops) return "ops";
  if (a.kernels != b.kernels) return "kernels";
  if (a.syncs != b.syncs) return "syncs";
  if (a.collectives != b.collectives) return "collectives";
  if (a.events != b.events) return "events";
  if (a.counts.first_problem != b.counts.first_problem) {
    return "first problem: '" + a.counts.first_problem + "', '" + b.counts.first_problem + "'";
  }
  return a.counts == b.counts ? "" : "counts";
}

}  // namespace forerun
