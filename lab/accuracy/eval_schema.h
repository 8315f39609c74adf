// The schema of what `forerun eval --json` prints, its first field: readers tell by it what they were given.
#pragma once

#include <string>

namespace forerun {

// "forerun.eval.memory/1"; the number rises when a field changes its meaning or goes.
inline std::string eval_schema(const std::string& suite) { return "forerun.eval." + suite + "/1"; }

}  // namespace forerun
