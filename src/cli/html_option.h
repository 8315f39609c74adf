// --html FILE: a verb's answer as a page (page/page.h), written whole beside what is printed.
//
// A verb adds the option, and gives what it would print with --json once its answer is there:
//
//   if (options.html.asked()) {
//     if (const Status status = write_html(options.html, to_json(answer)); !status.ok()) return fail(status.error());
//   }
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace forerun::cli {

struct HtmlOption {
  std::string path;                // empty: no page
  const CLI::App* verb = nullptr;  // whose options tell the command
  [[nodiscard]] bool asked() const { return !path.empty(); }
};

CLI::Option* add_html_option(CLI::App& verb, HtmlOption& html);
CLI::Option* add_html_option(CLI::App& verb, std::string& path);

// By name, JSON: what charts need beside the answer.
using PageSeries = std::vector<std::pair<std::string, std::string>>;

// `answers`: an object, one a line, or a list of them.
Status write_html(const HtmlOption& html, const std::string& answers, const PageSeries& series = {});

// The same of a verb whose options are gone by the time it answers.
struct HtmlPage {
  std::string path, verb, command;
};
Status write_html(const HtmlPage& page, const std::string& answers, const PageSeries& series = {});

// What was given of its options, as a user would type it, without --html: " --batch 64".
std::string options_text(const CLI::App& verb);
// The command as a user would type it, without --html: "forerun predict resnet50 --batch 64".
std::string command_text(const CLI::App& verb);

}  // namespace forerun::cli
