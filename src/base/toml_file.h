// TOML files that users write (prices, guards) or that are kept for them (forerun.lock), read with toml++. Included by
// sources alone: it takes long to compile.
#pragma once

#define TOML_ENABLE_FORMATTERS 0  // only read here: half the library
// Its parser asserts, or has the compiler assume, what a broken file does not keep ("[[["), just before it would say what is wrong.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_cast<void>(0)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <string_view>

#include "base/result.h"

namespace forerun {

// "prices.toml, line 3"
inline std::string line_of(const toml::node& node, const std::string& where) {
  return fmt::format("{}, line {}", where, node.source().begin.line);
}

// `where` names the text in Errors, `remedy` is what they advise.
inline Result<toml::table> parse_toml(const std::string& text, const std::string& where, const std::string& remedy) {
  try {
    return toml::parse(std::string_view(text));
  } catch (const toml::parse_error& problem) {
    return Error{fmt::format("is not valid TOML: {}", problem.description()),
                 fmt::format("{}, line {}", where, problem.source().begin.line), remedy};
  }
}

// The text of such a file, of at most a MiB. `kind` is what it is called: "price file".
inline Result<std::string> read_toml_text(const std::string& path, std::string_view kind, const std::string& remedy) {
  constexpr size_t kLargest = size_t{1} << 20;
  std::ifstream in(path, std::ios::binary);
  std::string text(kLargest + 1, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad())
    return Error{fmt::format("the {} cannot be read", kind), path, "check its name; " + remedy};
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() > kLargest) {
    return Error{fmt::format("the {} holds more than {} MiB", kind, kLargest >> 20), path, remedy};
  }
  return text;
}

}  // namespace forerun
