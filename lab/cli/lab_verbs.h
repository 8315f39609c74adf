// The verbs of forerun-lab: one file each; the list is in main.cpp.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace forerun::cli {

void add_train(CLI::App& app, Run& chosen);
void add_calibrate(CLI::App& app, Run& chosen);
void add_eval(CLI::App& app, Run& chosen);
void add_simulate(CLI::App& app, Run& chosen);
void add_lab_predict(CLI::App& app, Run& chosen);   // predict --with
void add_lab_schedule(CLI::App& app, Run& chosen);  // schedule --predictor ets
void add_lab_scale(CLI::App& app, Run& chosen);     // scale --testbed SETTING --with driple

// What the words after a verb ask for, nothing of it run yet; an Error is one of usage.
Result<Run> parse_train(const std::vector<std::string>& words);
Result<Run> parse_calibrate(const std::vector<std::string>& words);
Result<Run> parse_eval(const std::vector<std::string>& words);

}  // namespace forerun::cli
