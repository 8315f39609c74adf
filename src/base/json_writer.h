// JsonWriter: writes JSON from the outside in, without a tree in memory.
//
//   JsonWriter json;
//   json.begin_object().field("id", id).field("iter_ms", 1.5).key("ops").begin_array();
//   for (const Op& op : ops) json.value(op.name);
//   return json.end_array().end_object().take();  // {"id":"a","iter_ms":1.5,"ops":["relu","addmm"]}
//
// Text is escaped, bytes that are not UTF-8 become U+FFFD, numbers that are not finite become null. A double is printed as
// nlohmann::json prints it, so that answers do not change by a digit with who wrote them. Keys must differ: the writer does
// not look.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace forerun {

class JsonWriter {
 public:
  static constexpr int kOneLine = -1;

  // `indent`: blanks a level; kOneLine: no blanks and no line breaks at all.
  explicit JsonWriter(int indent = kOneLine) : indent_(indent) {}

  JsonWriter& begin_object() { return begin('{'); }
  JsonWriter& end_object() { return end('{', '}'); }
  JsonWriter& begin_array() { return begin('['); }
  JsonWriter& end_array() { return end('[', ']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(double number);
  JsonWriter& value(std::nullptr_t) { return raw("null"); }
  template <std::same_as<bool> T>
  JsonWriter& value(T flag) {
    return raw(flag ? "true" : "false");
  }
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>) JsonWriter& value(T number) {
    if constexpr (std::is_signed_v<T>) {
      return integer(static_cast<int64_t>(number));
    } else {
      return natural(static_cast<uint64_t>(number));
    }
  }
  template <class T>
  JsonWriter& value(const std::optional<T>& known) {
    return known ? value(*known) : raw("null");
  }
  template <class T>
  JsonWriter& value(const std::vector<T>& list) {
    begin_array();
    for (const T& entry : list) value(entry);
    return end_array();
  }
  template <class T>
  JsonWriter& value(const std::map<std::string, T>& entries) {
    begin_object();
    for (const auto& [name, entry] : entries) field(name, entry);
    return end_object();
  }

  // A value that is JSON already; it is written as it stands.
  JsonWriter& raw(std::string_view json);

  template <class T>
  JsonWriter& field(std::string_view name, const T& what) {
    key(name);
    return value(what);
  }

  // The text; what was begun must have ended.
  [[nodiscard]] std::string take();

 private:
  JsonWriter& begin(char bracket);
  JsonWriter& end(char opening, char closing);
  JsonWriter& integer(int64_t number);
  JsonWriter& natural(uint64_t number);
  void before_value();
  void before_entry();
  void break_line();

  struct Level {
    char bracket;
    bool empty = true;
  };

  std::string text_;
  std::vector<Level> open_;
  int indent_;
  bool after_key_ = false;
};

// Text in quotes, escaped.
std::string json_quoted(std::string_view text);

}  // namespace forerun
