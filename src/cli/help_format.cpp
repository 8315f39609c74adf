#include "cli/help_format.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

namespace forerun::cli {
namespace {

constexpr size_t kIndent = 2;
constexpr size_t kDescriptionColumn = 28;
constexpr double kEndless = 1e9;  // a range up to this or beyond has no end that users care about

// CLI11 names the type of a checked option "INT:INT in [1 - 3]".
struct OptionType {
  std::string name;   // "INT"
  std::string range;  // "1 to 3", "at least 1"; empty: any
};

OptionType type_of(const CLI::Option& option) {
  const std::string text = option.get_type_name();
  OptionType type{text.substr(0, text.find(':')), ""};
  const size_t open = text.find(" in ["), dash = text.find(" - ", open), close = text.find(']', open);
  if (open == std::string::npos || dash == std::string::npos || close == std::string::npos) return type;
  const std::string low = text.substr(open + 5, dash - open - 5), high = text.substr(dash + 3, close - dash - 3);
  if (std::strtod(high.c_str(), nullptr) < kEndless) {
    type.range = fmt::format("{} to {}", low, high);
  } else if (std::strtod(low.c_str(), nullptr) > -kEndless) {
    type.range = fmt::format("at least {}", low);
  }
  return type;
}

std::string two_columns(const std::string& heading, const std::string& description) {
  std::string text = std::string(kIndent, ' ') + heading;
  const size_t room = kHelpWidth - kDescriptionColumn;
  bool first = true;
  for (const std::string& line : wrapped(description, room)) {
    if (first && text.size() + 2 <= kDescriptionColumn) {
      text += std::string(kDescriptionColumn - text.size(), ' ') + line;
    } else {
      text += "\n" + std::string(kDescriptionColumn, ' ') + line;
    }
    first = false;
  }
  return text + "\n";
}

// A line of a footer, broken where it is too long: an example's explanation goes below the example, everything else is
// indented by two more than it began.
std::string footer_line(const std::string& line) {
  if (line.size() <= kHelpWidth) return line + "\n";
  const size_t begin = line.find_first_not_of(' ');
  const size_t explained = line.find("  ", begin);
  std::string text, rest = line.substr(begin);
  size_t indent = begin;
  if (explained != std::string::npos) {
    text = line.substr(0, explained) + "\n";
    rest = line.substr(line.find_first_not_of(' ', explained));
    indent = begin + 6;
  }
  for (const std::string& part : wrapped(rest, kHelpWidth - indent - 2)) {
    text += std::string(indent, ' ') + part + "\n";
    if (explained == std::string::npos && begin > 0) indent = begin + 2;
  }
  return text;
}

}  // namespace

std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    while (word.size() > width) {
      const size_t comma = word.rfind(',', width - 1);
      if (comma == std::string::npos) break;
      lines.push_back(word.substr(0, comma + 1));
      word.erase(0, comma + 1);
    }
    if (!lines.empty() && lines.back().size() + 1 + word.size() <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

std::string option_heading(const CLI::Option& option) {
  std::string text = option.get_positional() ? option.get_name(true, false) : option.get_name(false, true);
  if (option.get_items_expected_max() == 0 || option.get_positional()) return text;  // a flag, or a name that says it
  text += " " + type_of(option).name;
  if (option.get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
  return text;
}

std::string option_description(const CLI::Option& option) {
  const std::string range = option.get_items_expected_max() == 0 ? "" : type_of(option).range;
  return option.get_description() + (range.empty() ? "" : " (" + range + ")");
}

std::string HelpFormat::make_option(const CLI::Option* option, bool /*positional*/) const {
  return two_columns(option_heading(*option), option_description(*option));
}

std::string HelpFormat::make_subcommand(const CLI::App* verb) const {
  return two_columns(verb->get_display_name(true), verb->get_description());
}

std::string HelpFormat::make_footer(const CLI::App* verb) const {
  std::istringstream lines(verb->get_footer());
  std::string text;
  for (std::string line; std::getline(lines, line);) text += footer_line(line);
  return text;
}

}  // namespace forerun::cli
