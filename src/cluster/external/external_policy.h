// A scheduling policy that users bring as a file: Python (def schedule(cluster)) or a shared library (forerun_policy.h).
//
// The policy runs in a process of its own (policy_process.h) and is told of events in the order in which a built-in policy
// is. What it answers is checked before it is done: a policy that asks for what cannot be ends the simulation with an
// Error (Scheduler::give_up). Left out: two jobs that share a GPU.
#pragma once

#include <memory>
#include <string>

#include "base/options_text.h"
#include "base/result.h"
#include "cluster/policy.h"

namespace forerun::cluster {

// Whether a policy of this name is a file: it ends in .py or .so.
bool is_external_policy(const std::string& name);

// An Error where there is no such file.
Status check_external_policy(const std::string& file);

// Option timeout: seconds that it may take to answer.
std::unique_ptr<Policy> make_external_policy(const std::string& file, OptionReader& options);

}  // namespace forerun::cluster
