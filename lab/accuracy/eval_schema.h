// The schema of what `forerun eval --json` prints, its first field: readers tell by it what they were given.
#pragma once

#include <string>

namespace forerun {

// "forerun.eval.memory/1"; the number rises when a field changes its meaning or goes.
inline std::string eval_schema(const std::string& suite, int version = 1) {
  return "forerun.eval." + suite + "/" + std::to_string(version);
}

}  // namespace forerun
