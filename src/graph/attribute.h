// Attributes of an op: a small ordered map from key to value, as PyTorch passes them ("dim": 1, "size": [2, -1]).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace forerun {

using Shape = std::vector<int64_t>;

// "[2, 3]".
std::string text_of(const Shape& shape);

// `std::monostate` is JSON's null; nested or mixed lists, which no rule reads, are kept as their JSON text.
struct JsonText {
  std::string text;
  bool operator==(const JsonText&) const = default;
};
using AttributeValue = std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<int64_t>,
                                    std::vector<double>, std::vector<bool>, JsonText>;

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, AttributeValue>> entries) : entries_(entries) {}

  void set(std::string key, AttributeValue value) { entries_.emplace_back(std::move(key), std::move(value)); }

  [[nodiscard]] const AttributeValue* find(std::string_view key) const;
  // The value if present and of a fitting kind (an int where a double is asked for fits), else the default.
  [[nodiscard]] int64_t get_int(std::string_view key, int64_t otherwise) const;
  [[nodiscard]] double get_double(std::string_view key, double otherwise) const;
  [[nodiscard]] bool get_bool(std::string_view key, bool otherwise) const;
  [[nodiscard]] std::string get_string(std::string_view key, std::string otherwise = {}) const;
  [[nodiscard]] Shape get_ints(std::string_view key, Shape otherwise = {}) const;

  [[nodiscard]] const std::vector<std::pair<std::string, AttributeValue>>& entries() const { return entries_; }
  [[nodiscard]] bool empty() const { return entries_.empty(); }

  // Whether they have the same values in the same order.
  friend bool operator==(const Attributes&, const Attributes&) = default;
  [[nodiscard]] uint64_t hash() const;

  // One JSON object; equal attributes give equal text.
  [[nodiscard]] std::string to_json() const;

 private:
  std::vector<std::pair<std::string, AttributeValue>> entries_;
};

}  // namespace forerun
