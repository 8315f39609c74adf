// TextStyle: how an answer is written for people: in short or in full, with colours and bars or without.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace forerun {

enum class TextColor : uint8_t { red, green, yellow };

struct TextStyle {
  bool details = false;
  bool terminal = false;  // colours and bars: somebody looks at it

  [[nodiscard]] std::string colored(std::string_view text, TextColor color) const;
  [[nodiscard]] std::string bold(std::string_view text) const;
};

// Lines of at most `width` columns, broken between words, each ended; those behind the first begin with `indent`.
std::string wrapped(std::string_view text, std::string_view indent, size_t width = 100);

}  // namespace forerun
