// How --help looks: options and verbs in two columns, wrapped at 100.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace forerun::cli {

inline constexpr size_t kHelpWidth = 100;

// Breaks text into lines of at most `width`, between words; a word that is longer behind its commas.
std::vector<std::string> wrapped(const std::string& text, size_t width);

// An option as help shows it: "--batch INT", "MODEL TEXT"; and its description with the range that it takes.
std::string option_heading(const CLI::Option& option);
std::string option_description(const CLI::Option& option);

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool positional) const override;
  std::string make_subcommand(const CLI::App* verb) const override;
  std::string make_footer(const CLI::App* verb) const override;
};

}  // namespace forerun::cli
