// How long a job is: shared by the verbs that tell its hours.
#pragma once

#include <CLI/CLI.hpp>

#include "api/predict.h"

namespace forerun::cli {

// --iterations and --samples: "100000", "115M".
void add_job_options(CLI::App& verb, JobLength& length);

}  // namespace forerun::cli
