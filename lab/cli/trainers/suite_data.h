// The options that say which data a learned predictor is trained on: a suite's (lab/eval/learned_suites.h).
#pragma once

#include <string>

#include "cli/command.h"
#include "lab/eval/learned_suites.h"

namespace forerun::cli {

struct SuiteData {
  std::string suite = "h200";
  LearnedSuiteOptions options;
  std::string write_cache;  // file; empty: none
};

void add_suite_data(CLI::App& app, SuiteData& data);

// Reads the data, tells how much it is, and writes the cache where one is asked for.
Result<learn::DataSet> load_suite_data(const SuiteData& data);

}  // namespace forerun::cli
