#include "graph/attribute.h"

#include <fmt/format.h>

#include <cmath>

#include "base/id_index.h"

namespace forerun {
namespace {

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

// JSON has no NaN and no infinity: they become null.
std::string number_text(double value) {
  if (!std::isfinite(value)) return "null";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".eE") == std::string::npos) text += ".0";
  return text;
}

struct Writer {
  std::string& out;
  void operator()(std::monostate /*null*/) const { out += "null"; }
  void operator()(bool v) const { out += v ? "true" : "false"; }
  void operator()(int64_t v) const { out += fmt::format("{}", v); }
  void operator()(double v) const { out += number_text(v); }
  void operator()(const std::string& v) const { append_quoted(out, v); }
  void operator()(const JsonText& v) const { out += v.text; }
  template <class T>
  void operator()(const std::vector<T>& list) const {
    out += '[';
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out += ", ";
      (*this)(static_cast<T>(list[i]));
    }
    out += ']';
  }
};

struct Hasher {
  uint64_t hash = 0;
  void operator()(std::monostate /*null*/) { hash = mixed(hash, 0); }
  void operator()(bool v) { hash = mixed(hash, v ? 1 : 0); }
  void operator()(int64_t v) { hash = mixed(hash, static_cast<uint64_t>(v)); }
  void operator()(double v) { hash = mixed(hash, std::hash<double>()(v)); }
  void operator()(const std::string& v) { hash = mixed(hash, std::hash<std::string>()(v)); }
  void operator()(const JsonText& v) { (*this)(v.text); }
  template <class T>
  void operator()(const std::vector<T>& list) {
    hash = mixed(hash, list.size());
    for (const T v : list) (*this)(v);
  }
};

}  // namespace

uint64_t Attributes::hash() const {
  Hasher hasher;
  for (const auto& [key, value] : entries_) {
    hasher(key);
    std::visit(hasher, value);
  }
  return hasher.hash;
}

const AttributeValue* Attributes::find(std::string_view key) const {
  for (const auto& [name, value] : entries_) {
    if (name == key) return &value;
  }
  return nullptr;
}

int64_t Attributes::get_int(std::string_view key, int64_t otherwise) const {
  const AttributeValue* value = find(key);
  if (value == nullptr) return otherwise;
  if (const auto* number = std::get_if<int64_t>(value)) return *number;
  if (const auto* flag = std::get_if<bool>(value)) return *flag ? 1 : 0;
  return otherwise;
}

double Attributes::get_double(std::string_view key, double otherwise) const {
  const AttributeValue* value = find(key);
  if (value == nullptr) return otherwise;
  if (const auto* number = std::get_if<double>(value)) return *number;
  if (const auto* whole = std::get_if<int64_t>(value)) return static_cast<double>(*whole);
  return otherwise;
}

bool Attributes::get_bool(std::string_view key, bool otherwise) const {
  const AttributeValue* value = find(key);
  const bool* flag = value == nullptr ? nullptr : std::get_if<bool>(value);
  return flag == nullptr ? otherwise : *flag;
}

std::string Attributes::get_string(std::string_view key, std::string otherwise) const {
  const AttributeValue* value = find(key);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  if (text != nullptr) return *text;
  return otherwise;
}

Shape Attributes::get_ints(std::string_view key, Shape otherwise) const {
  const AttributeValue* value = find(key);
  const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(value);
  if (list != nullptr) return *list;
  return otherwise;
}

std::string Attributes::to_json() const {
  std::string out = "{";
  for (const auto& [key, value] : entries_) {
    if (out.size() > 1) out += ", ";
    append_quoted(out, key);
    out += ": ";
    std::visit(Writer{out}, value);
  }
  return out + "}";
}

std::string text_of(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace forerun
