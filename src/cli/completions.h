// Completion scripts for shells, made from the program's own verbs and options.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace forerun::cli {

// `shell`: bash, zsh or fish.
Result<std::string> completion_script(const CLI::App& program, std::string_view shell);

}  // namespace forerun::cli
