// How the links of a testbed session were shared, window by window.
//
// The connections of a session last from its first window to its last. At first a server's answers to two workers share
// its link evenly; from some window on, when Reno's congestion windows have grown, those to one worker get most of it,
// and workers that computed side by side take turns. When that happens and which worker it is differs from session to
// session, and it doubles or halves bursts and idles of the same workload. Nobody knows it before a run: tables that divide
// windows by it say how good a predictor would be that did. A session is what has one setting, one congestion control, one `repeat` and one machine, in the
// order of the records.
// What tells are synchronous windows with large models of families that may tell, by worker 0's mean rate while it
// receives and by how much of a model it receives in a burst; every window has the state that most of
// the nearest that tell have.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ingest/resources/resource_record.h"

namespace forerun {

// Sets `links` of records where a setting has windows of more than one state.
void mark_links(std::span<ResourceRecord> records, const std::function<bool(const std::string& family)>& may_tell);

}  // namespace forerun
