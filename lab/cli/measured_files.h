// The record files that trees and constants of `forerun predict` are made of.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace forerun::cli {

// The files of these paths; of data/h200 where there are none.
Result<std::vector<std::string>> measured_files(const std::vector<std::string>& paths);

}  // namespace forerun::cli
