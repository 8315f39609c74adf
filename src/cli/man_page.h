// Manual pages, made from the same texts as --help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace forerun::cli {

// A page of section 1, in roff: of the program, or of one of its verbs ("predict", "data summary" as "data-summary").
std::string man_page(const CLI::App& program, const CLI::App& verb, const std::string& version);

}  // namespace forerun::cli
