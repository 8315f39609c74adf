// `forerun-train driple`: one job of a study (driple_study.h) on cached data, where there is LibTorch and nothing else.
#pragma once

#include <string>
#include <vector>

namespace forerun::learn {

// Words behind `driple`; prints a line of JSON, and is the program's exit code.
int driple_command(const std::vector<std::string>& words);

}  // namespace forerun::learn
