// Public checkpoints by the names people type: data/zoo/checkpoints.json has the config keys and the number of parameters
// that their makers published.
//
// An entry a line:
// {"names": ["Qwen/Qwen3-8B", "Qwen/Qwen3-8B-Base"], "parameters": 8190735360, "config": {"model_type": "qwen3", ...}}
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace forerun::zoo {

struct Checkpoint {
  std::vector<std::string> names;  // with their organisation; the first is the one shown
  std::string model_type;
  int64_t parameters = 0;
  std::string config;  // JSON, for HfConfig
};

// All of them, in the file's order. Read anew each time.
Result<std::vector<Checkpoint>> checkpoints();

// The one of that name. Letter case does not count, '-', '_' and '.' are the same, and the organisation may be left out.
Result<std::optional<Checkpoint>> find_checkpoint(std::string_view name);

// All names of the organisation that `name` begins with; none where there is no checkpoint of it.
std::vector<std::string> names_of_organisation(std::string_view name);

}  // namespace forerun::zoo
