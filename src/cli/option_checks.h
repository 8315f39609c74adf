// Options of a verb that some of its forms do not read: given all the same, they are refused and not passed over.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace forerun::cli {

// Names of the options ("--epochs") that the user gave.
std::vector<std::string> given_options(const CLI::App& verb);

// An Error where one was given that is not among those read; `form` is what the user called: "forerun train hybrid".
Status check_given(const std::vector<std::string>& given, const std::vector<std::string>& read,
                   const std::string& form);

}  // namespace forerun::cli
