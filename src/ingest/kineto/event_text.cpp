#include "ingest/kineto/event_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <iterator>

namespace forerun {
namespace {

constexpr bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

size_t skip_blanks(std::string_view text, size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// Whether `at`, the place of a "{", begins an event that follows another one.
bool begins_event(std::string_view text, size_t at) {
  const size_t quote = skip_blanks(text, at + 1);
  if (quote >= text.size() || text[quote] != '"') return false;
  const std::string_view rest = text.substr(quote + 1, 8);
  constexpr std::string_view kKeys[] = {"ph\"", "name\"", "cat\"", "args\"", "pid\"", "tid\"", "ts\"", "dur\""};
  bool key = false;
  for (const std::string_view name : kKeys) key = key || rest.starts_with(name);
  if (!key) return false;
  size_t before = at;
  while (before > 0 && is_blank(text[before - 1])) --before;
  if (before == 0 || text[before - 1] != ',') return false;
  --before;
  while (before > 0 && is_blank(text[before - 1])) --before;
  return before > 0 && text[before - 1] == '}';
}

// Whether what stands at `at` can follow a closed string: the end of a list or object, a colon, or a comma before a value.
bool can_follow_string(std::string_view text, size_t at) {
  at = skip_blanks(text, at);
  if (at >= text.size() || text[at] == '}' || text[at] == ']' || text[at] == ':') return true;
  if (text[at] != ',') return false;
  at = skip_blanks(text, at + 1);
  if (at >= text.size()) return true;
  const char c = text[at];
  return c == '"' || c == '{' || c == '[' || c == '-' || (c >= '0' && c <= '9');
}

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Length of the valid escape at `at` (of its backslash); 0 where it is none.
size_t escape_length(std::string_view text, size_t at) {
  if (at + 1 >= text.size()) return 0;
  const char c = text[at + 1];
  if (std::strchr("\"\\/bfnrt", c) != nullptr && c != '\0') return 2;
  if (c != 'u' || at + 5 >= text.size()) return 0;
  for (size_t i = at + 2; i < at + 6; ++i) {
    if (!is_hex(text[i])) return 0;
  }
  return 6;
}

// Length of the UTF-8 character at `at`; 0 where it is none.
size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(at);
  const size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  uint32_t code = length == 2 ? first & 31 : length == 3 ? first & 15 : first & 7;
  for (size_t i = 1; i < length; ++i) {
    if (byte(at + i) >> 6 != 2) return 0;
    code = code << 6 | (byte(at + i) & 63);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return length > 1 && (code < kLeast[length] || surrogate || code > 0x10FFFF) ? 0 : length;
}

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 63));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 63));
    out += static_cast<char>(0x80 | (code & 63));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 63));
    out += static_cast<char>(0x80 | (code >> 6 & 63));
    out += static_cast<char>(0x80 | (code & 63));
  }
}

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Copies the string that begins behind the quote at `at - 1` and returns where it ends, behind its closing quote.
size_t mend_string(std::string_view text, size_t at, bool trust_escapes, std::string& out) {
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      if (can_follow_string(text, at + 1)) break;
      out += "\\\"";
      ++at;
    } else if (c == '\\') {
      const size_t length = escape_length(text, at);
      const bool closes = !trust_escapes && length == 2 && text[at + 1] == '"' && can_follow_string(text, at + 2);
      if (length == 0 || closes) {
        out += "\\\\";
        ++at;
      } else {
        out += text.substr(at, length);
        at += length;
      }
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
      ++at;
    } else if (const size_t length = utf8_length(text, at); length == 0) {
      out += kReplacement;
      ++at;
    } else {
      out += text.substr(at, length);
      at += length;
    }
  }
  out += '"';
  return at + 1;
}

uint32_t hex_of(std::string_view digits) {
  uint32_t value = 0;
  for (const char c : digits) {
    value = value * 16 + static_cast<uint32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return value;
}

}  // namespace

size_t next_event(std::string_view text, size_t from) {
  for (size_t at = text.find('{', from); at != kNowhere; at = text.find('{', at + 1)) {
    if (begins_event(text, at)) return at;
  }
  return kNowhere;
}

size_t last_event(std::string_view text) {
  for (size_t at = text.rfind('{'); at != kNowhere; at = at == 0 ? kNowhere : text.rfind('{', at - 1)) {
    if (begins_event(text, at)) return at;
  }
  return kNowhere;
}

std::string repaired(std::string_view event, bool trust_escapes) {
  std::string out;
  out.reserve(event.size() + 16);
  for (size_t at = 0; at < event.size();) {
    const char c = event[at++];
    if (c == '"') {
      out += '"';
      at = mend_string(event, at, trust_escapes, out);
    } else if (static_cast<unsigned char>(c) < 0x80 && (static_cast<unsigned char>(c) >= 0x20 || is_blank(c))) {
      out += c;
    }
  }
  return out;
}

std::string unescaped(std::string_view text, bool& broken) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '\\') {
      out += text[at++];
      continue;
    }
    const size_t length = escape_length(text, at);
    if (length == 0) {
      broken = true;
      out += text[at++];
      continue;
    }
    if (length == 2) {
      constexpr std::string_view kFrom = "bfnrt";
      constexpr std::string_view kTo = "\b\f\n\r\t";
      const size_t which = kFrom.find(text[at + 1]);
      out += which == kNowhere ? text[at + 1] : kTo[which];
    } else {
      uint32_t code = hex_of(text.substr(at + 2, 4));
      if (code >= 0xD800 && code < 0xDC00 && escape_length(text, at + 6) == 6) {
        const uint32_t low = hex_of(text.substr(at + 8, 4));
        if (low >= 0xDC00 && low < 0xE000) {
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
          at += 6;
        }
      }
      if (code >= 0xD800 && code < 0xE000) {
        out += kReplacement;
      } else {
        append_utf8(out, code);
      }
    }
    at += length;
  }
  return out;
}

}  // namespace forerun
