// The suites of `forerun eval`: one file each in this folder, one line each in suites.cpp.
#pragma once

#include <vector>

#include "lab/cli/task.h"

namespace forerun::cli {

using Suite = Task;

// In the order of `forerun eval --help`.
const std::vector<Suite>& suites();

Suite h200_suite();
Suite ets_t4_suite();
Suite ets_2080ti_suite();
Suite papers_suite();
Suite calibration_suite();
Suite gpus_suite();
Suite other_gpus_suite();
Suite memory_suite();
Suite compile_suite();
Suite whatif_suite();
Suite daydream_suite();
Suite ddl_benchmark_suite();
Suite vtrain_suite();
Suite megatron_suite();
Suite llm_foundry_suite();
Suite published_runs_suite();
Suite testbed_suite();
Suite driple_suite();

}  // namespace forerun::cli
