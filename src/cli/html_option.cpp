#include "cli/html_option.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>

#include "base/options_text.h"
#include "base/output_file.h"
#include "page/page.h"

namespace forerun::cli {
namespace {

constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:@%+";

// A word as a shell takes it.
std::string shell_word(const std::string& word) {
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Now, or the time that builds which must not differ set (https://reproducible-builds.org/docs/source-date-epoch).
std::string time_of_page() {
  std::time_t now = std::time(nullptr);
  const char* fixed = std::getenv("SOURCE_DATE_EPOCH");  // NOLINT(concurrency-mt-unsafe)
  if (fixed != nullptr) {
    if (const auto number = number_in(fixed); number && *number >= 0 && *number < 4e11) {
      now = static_cast<std::time_t>(*number);
    }
  }
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

std::string names_of(const CLI::App& verb) {
  const CLI::App* parent = verb.get_parent();
  return parent == nullptr ? "" : names_of(*parent) + (names_of(*parent).empty() ? "" : " ") + verb.get_name();
}

}  // namespace

CLI::Option* add_html_option(CLI::App& verb, std::string& path) {
  return verb.add_option("--html", path,
                         "Write the answer as one page with charts and tables, which opens without a network");
}

CLI::Option* add_html_option(CLI::App& verb, HtmlOption& html) {
  html.verb = &verb;
  return add_html_option(verb, html.path);
}

std::string options_text(const CLI::App& verb) {
  std::string text;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() == 0 || option->get_name() == "--html") continue;
    const bool flag = option->get_items_expected_max() == 0;
    for (const std::string& value : option->results()) {
      if (!option->get_positional()) text += " " + option->get_name();
      if (!flag) text += " " + shell_word(value);
      if (flag) break;
    }
  }
  return text;
}

std::string command_text(const CLI::App& verb) { return "forerun " + names_of(verb) + options_text(verb); }

Status write_html(const HtmlOption& html, const std::string& answers, const PageSeries& series) {
  return write_html(HtmlPage{html.path, names_of(*html.verb), command_text(*html.verb)}, answers, series);
}

Status write_html(const HtmlPage& page, const std::string& answers, const PageSeries& series) {
  return write_whole_file(page.path, page::report_page({.verb = page.verb,
                                                        .command = page.command,
                                                        .answers = answers,
                                                        .series = series,
                                                        .made = time_of_page(),
                                                        .version = FORERUN_VERSION}));
}

}  // namespace forerun::cli
