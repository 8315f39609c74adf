// What a sweep found, as a table with the best configuration named.
#pragma once

#include <string>
#include <vector>

#include "api/sweep.h"

namespace forerun {

std::string sweep_text(const std::vector<std::string>& axes, const std::vector<SweepRow>& rows);

// One line: the axes under "sweep", then what `predict --json` gives, or "error".
std::string sweep_json(const std::vector<std::string>& axes, const std::vector<std::string>& values,
                       const Result<Prediction>& prediction);

// The columns of `predict --csv` behind those of the axes, less those that an axis has already: each name stands once. A
// configuration that could not be built has no row. `whole_run`: hours and cost of it stand at the end.
std::string sweep_csv_header(const std::vector<std::string>& axes, bool whole_run = false);
std::string sweep_csv(const std::vector<std::string>& axes, const std::vector<std::string>& values,
                      const Prediction& prediction);

}  // namespace forerun
