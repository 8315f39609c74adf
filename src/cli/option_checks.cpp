#include "cli/option_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace forerun::cli {

std::vector<std::string> given_options(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() > 0 && !option->get_lnames().empty()) names.push_back("--" + option->get_lnames().front());
  }
  return names;
}

Status check_given(const std::vector<std::string>& given, const std::vector<std::string>& read,
                   const std::string& form) {
  for (const std::string& name : given) {
    if (std::find(read.begin(), read.end(), name) != read.end()) continue;
    return Error{fmt::format("`{}` does not read {}", form, name), name,
                 fmt::format("leave it out; it reads {}", fmt::join(read, ", "))};
  }
  return {};
}

}  // namespace forerun::cli
