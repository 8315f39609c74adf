// A DataSummary as text and JSON.
#pragma once

#include <string>

#include "records/data_summary.h"

namespace forerun {

std::string to_text(const DataSummary& summary);
std::string to_json(const DataSummary& summary);  // one line

}  // namespace forerun
