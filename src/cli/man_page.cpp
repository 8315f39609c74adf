#include "cli/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/help_format.h"

namespace forerun::cli {
namespace {

// Text as roff takes it: a backslash, a hyphen and a dot or quote at the start of a line have meanings of their own.
std::string roff(const std::string& text) {
  std::string out;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    at_start = c == '\n';
  }
  return out;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

// "forerun-data-summary"
std::string page_name(const CLI::App& program, const CLI::App& verb) {
  std::string name;
  for (const CLI::App* at = &verb; at != nullptr && at != &program; at = at->get_parent())
    name = "-" + at->get_name() + name;
  return program.get_name() + name;
}

std::string options_section(const CLI::App& verb, bool positional) {
  std::string text;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_group().empty() || option->get_positional() != positional) continue;
    text += fmt::format(".TP\n.B {}\n{}\n", roff(option_heading(*option)), roff(option_description(*option)));
  }
  return text;
}

std::string synopsis(const CLI::App& program, const CLI::App& verb) {
  std::string called = page_name(program, verb);
  std::replace(called.begin() + static_cast<std::ptrdiff_t>(program.get_name().size()), called.end(), '-', ' ');
  std::string text = fmt::format(".B {}\n", roff(called));
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_positional()) text += fmt::format(".I {}\n", roff(option->get_name(true, false)));
  }
  if (!verb.get_subcommands({}).empty()) text += ".I VERB\n";
  return text + "[options]\n";
}

}  // namespace

std::string man_page(const CLI::App& program, const CLI::App& verb, const std::string& version) {
  const std::string name = page_name(program, verb);
  std::string text =
      fmt::format(".TH {} 1 \"\" \"forerun {}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}", upper(roff(name)),
                  roff(version), roff(name), roff(verb.get_description()), synopsis(program, verb));
  if (const std::string arguments = options_section(verb, true); !arguments.empty())
    text += ".SH ARGUMENTS\n" + arguments;
  text += ".SH OPTIONS\n" + options_section(verb, false);
  const auto verbs = verb.get_subcommands({});
  if (!verbs.empty()) text += ".SH VERBS\n";
  for (const CLI::App* each : verbs) {
    text += fmt::format(".TP\n.B {}\n{}\n", roff(each->get_name()), roff(each->get_description()));
  }
  if (!verb.get_footer().empty()) text += ".SH NOTES\n.nf\n" + roff(verb.get_footer()) + "\n.fi\n";
  if (&verb != &program) text += fmt::format(".SH SEE ALSO\n.BR {} (1)\n", program.get_name());
  return text;
}

}  // namespace forerun::cli
