// What `forerun data check` and `forerun data merge` found, as text and JSON.
#pragma once

#include <string>

#include "api/data.h"

namespace forerun {

// A finding: a record, or a file, that cannot be used or is odd. Lines end without "\n".
std::string finding_text(const DataProblem& problem);
std::string finding_json(const DataProblem& problem);
std::string unreadable_json(const Error& error);

std::string to_text(const DataCheck& check);
std::string to_json(const DataCheck& check);

// `out`: the file that was written.
std::string to_text(const MergeResult& result, const std::string& out);
std::string to_json(const MergeResult& result, const std::string& out);

}  // namespace forerun
