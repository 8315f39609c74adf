#include "report/text_style.h"

#include <fmt/format.h>

#include <algorithm>

namespace forerun {

std::string TextStyle::colored(std::string_view text, TextColor color) const {
  const int code = color == TextColor::red ? 31 : color == TextColor::green ? 32 : 33;
  return terminal ? fmt::format("\x1b[{}m{}\x1b[39m", code, text) : std::string(text);
}

std::string TextStyle::bold(std::string_view text) const {
  return terminal ? fmt::format("\x1b[1m{}\x1b[22m", text) : std::string(text);
}

std::string wrapped(std::string_view text, std::string_view indent, size_t width) {
  const size_t first = std::min(text.find_first_not_of(' '), text.size());
  std::string out;
  std::string line(text.substr(0, first));
  bool empty = true;
  text.remove_prefix(first);
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!empty && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line = indent;
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
  }
  return out + line + "\n";
}

}  // namespace forerun
