#include "base/json_writer.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace forerun {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_between(unsigned char byte, int low, int high) { return byte >= low && byte <= high; }

// How many bytes follow the first one of a sequence, and what the first of them may be: overlong forms, surrogates and
// what lies above U+10FFFF are told apart there (Unicode, table 3-7).
struct Utf8Lead {
  size_t further = 0;  // 0: no first byte
  int low = 0x80, high = 0xBF;
};

Utf8Lead utf8_lead(unsigned char byte) {
  if (is_between(byte, 0xC2, 0xDF)) return {1};
  if (is_between(byte, 0xE0, 0xEF)) return {2, byte == 0xE0 ? 0xA0 : 0x80, byte == 0xED ? 0x9F : 0xBF};
  if (is_between(byte, 0xF0, 0xF4)) return {3, byte == 0xF0 ? 0x90 : 0x80, byte == 0xF4 ? 0x8F : 0xBF};
  return {};
}

// Appends the character that begins at `at`, or U+FFFD for as many bytes as could have begun one; the next place.
size_t append_utf8(std::string_view text, size_t at, std::string& out) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const Utf8Lead lead = utf8_lead(byte(at));
  size_t length = 1;
  while (length <= lead.further && at + length < text.size() &&
         is_between(byte(at + length), length == 1 ? lead.low : 0x80, length == 1 ? lead.high : 0xBF)) {
    ++length;
  }
  const bool whole = lead.further > 0 && length == lead.further + 1;
  out += whole ? text.substr(at, length) : kReplacement;
  return at + length;
}

void append_escaped(unsigned char byte, std::string& out) {
  switch (byte) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  constexpr const char* kHex = "0123456789abcdef";
  if (byte >= 0x20) {
    out += static_cast<char>(byte);
  } else {
    out += {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
  }
}

void append_quoted(std::string_view text, std::string& out) {
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {
      append_escaped(byte, out);
      ++at;
    } else {
      at = append_utf8(text, at, out);
    }
  }
  out += '"';
}

template <class Whole>
void append_whole(Whole number, std::string& out) {
  char digits[24];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, end.ptr);
}

}  // namespace

std::string json_quoted(std::string_view text) {
  std::string out;
  append_quoted(text, out);
  return out;
}

void JsonWriter::break_line() {
  if (indent_ == kOneLine) return;
  text_ += '\n';
  text_.append(open_.size() * static_cast<size_t>(indent_), ' ');
}

void JsonWriter::before_entry() {
  if (!open_.back().empty) text_ += ',';
  open_.back().empty = false;
  break_line();
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (open_.empty()) {
    CHECK(text_.empty(), "a JSON text is one value");
    return;
  }
  CHECK(open_.back().bracket == '[', "a value in an object needs a key");
  before_entry();
}

JsonWriter& JsonWriter::begin(char bracket) {
  before_value();
  text_ += bracket;
  open_.push_back({bracket});
  return *this;
}

JsonWriter& JsonWriter::end(char opening, char closing) {
  CHECK(!open_.empty() && open_.back().bracket == opening && !after_key_, "ends what was not begun");
  const bool empty = open_.back().empty;
  open_.pop_back();
  if (!empty) break_line();
  text_ += closing;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  CHECK(!open_.empty() && open_.back().bracket == '{' && !after_key_, "a key stands in an object, before its value");
  before_entry();
  append_quoted(name, text_);
  text_ += indent_ == kOneLine ? ":" : ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  append_quoted(text, text_);
  return *this;
}

JsonWriter& JsonWriter::value(double number) { return raw(nlohmann::json(number).dump()); }

JsonWriter& JsonWriter::integer(int64_t number) {
  before_value();
  append_whole(number, text_);
  return *this;
}

JsonWriter& JsonWriter::natural(uint64_t number) {
  before_value();
  append_whole(number, text_);
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  before_value();
  text_ += json;
  return *this;
}

std::string JsonWriter::take() {
  CHECK(open_.empty() && !after_key_ && !text_.empty(), "a JSON text ends with what it began with");
  return std::move(text_);
}

}  // namespace forerun
