// A verb of the program: how it reads its options and what it runs. One file per verb; the list is in forerun_program.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "base/result.h"

namespace forerun::cli {

// What the program exits with: outside checks rely on these numbers.
enum ExitCode : int { kDone = 0, kInputAtFault = 1, kUsage = 2, kDoesNotFit = 3, kGuardFails = 3, kStopped = 130 };

using Run = std::function<int()>;

// Adds the verb to `app`. When the user gives it, `chosen` is set to what it runs.
void add_predict(CLI::App& app, Run& chosen);
void add_fit(CLI::App& app, Run& chosen);
void add_compare(CLI::App& app, Run& chosen);
void add_sweep(CLI::App& app, Run& chosen);
void add_check(CLI::App& app, Run& chosen);
void add_zoo(CLI::App& app, Run& chosen);
void add_devices(CLI::App& app, Run& chosen);
void add_data(CLI::App& app, Run& chosen);
void add_lab_verbs(CLI::App& app, Run& chosen);  // train, calibrate, eval, simulate
void add_memory(CLI::App& app, Run& chosen);
void add_schedule(CLI::App& app, Run& chosen);
void add_slurm(CLI::App& app, Run& chosen);
void add_trace(CLI::App& app, Run& chosen);
void add_replay(CLI::App& app, Run& chosen);
void add_whatif(CLI::App& app, Run& chosen);
void add_scale(CLI::App& app, Run& chosen);
void add_monitor(CLI::App& app, Run& chosen);
void add_serve(CLI::App& app, Run& chosen);
void add_store(CLI::App& app, Run& chosen);
void add_installation(CLI::App& app, Run& chosen);  // completions, man

// Prints "forerun: MESSAGE" to standard error and returns kInputAtFault, or kStopped where the user stopped it.
int fail(const Error& error);

}  // namespace forerun::cli
