// JsonWalk: steps through simdjson's on-demand values, keeping the first complaint.
//
// Every step returns whether it succeeded; after a failure the document must not be touched again. Included by .cpp
// files alone, so that simdjson stays out of the other headers.
#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/dtype.h"

namespace forerun {

class JsonWalk {
 public:
  using Value = simdjson::ondemand::value;

  [[nodiscard]] const std::string& complaint() const { return complaint_; }

 protected:
  bool fail(std::string complaint) {
    complaint_ = std::move(complaint);
    return false;
  }

  // A value of another type than `wanted`, or broken JSON.
  bool fail(simdjson::error_code code, std::string_view what, std::string_view wanted) {
    if (code == simdjson::INCORRECT_TYPE) return fail(fmt::format("{} is not {}", what, wanted));
    return fail(fmt::format("{} is not {}: {}", what, wanted, simdjson::error_message(code)));
  }

  // Calls visit(index, value) -> bool for each element; `visit` may leave a value unread.
  template <class Visit>
  bool each(Value value, std::string_view what, Visit visit) {
    simdjson::ondemand::array array;
    if (auto code = value.get_array().get(array)) return fail(code, what, "a list");
    size_t index = 0;
    for (auto element : array) {
      Value item;
      if (auto code = element.get(item)) return fail(code, what, "a list");
      if (!visit(index++, item)) return false;
    }
    return true;
  }

  // Calls visit(key, value) -> bool for each field of an object.
  template <class Visit>
  bool each_field(Value value, std::string_view what, Visit visit) {
    simdjson::ondemand::object object;
    if (auto code = value.get_object().get(object)) return fail(code, what, "an object");
    return each_field(object, what, visit);
  }
  template <class Visit>
  bool each_field(simdjson::ondemand::object object, std::string_view what, Visit visit) {
    for (auto field : object) {
      std::string_view key;
      Value item;
      if (auto code = field.unescaped_key().get(key)) return fail(code, what, "an object");
      if (auto code = field.value().get(item)) return fail(code, what, "an object");
      if (!visit(key, item)) return false;
    }
    return true;
  }

  bool text(Value value, std::string_view what, std::string_view& out) {
    if (auto code = value.get_string().get(out)) return fail(code, what, "a string");
    return true;
  }
  bool text(Value value, std::string_view what, std::string& out) {
    std::string_view view;
    if (!text(value, what, view)) return false;
    out = view;
    return true;
  }

  bool whole(Value value, std::string_view what, int64_t& out) {
    if (auto code = value.get_int64().get(out)) return fail(code, what, "a whole number");
    return true;
  }
  bool whole(Value value, std::string_view what, uint64_t& out) {
    if (auto code = value.get_uint64().get(out)) return fail(code, what, "a whole number of 0 or more");
    return true;
  }
  bool index(Value value, std::string_view what, uint32_t& out) {
    uint64_t number = 0;
    if (!whole(value, what, number)) return false;
    if (number >= UINT32_MAX) return fail(fmt::format("{} is {}, far too large", what, number));
    out = static_cast<uint32_t>(number);
    return true;
  }

  bool number(Value value, std::string_view what, double& out) {
    if (auto code = value.get_double().get(out)) return fail(code, what, "a number");
    if (!std::isfinite(out)) return fail(fmt::format("{} is not finite", what));
    return true;
  }

  bool flag(Value value, std::string_view what, bool& out) {
    if (auto code = value.get_bool().get(out)) return fail(code, what, "true or false");
    return true;
  }

  // The text of an object, checked only for balanced brackets.
  bool object_text(Value value, std::string_view what, std::string_view& out) {
    simdjson::ondemand::object object;
    if (auto code = value.get_object().get(object)) return fail(code, what, "an object");
    if (auto code = object.raw_json().get(out)) return fail(code, what, "an object");
    while (!out.empty() && out.back() != '}') out.remove_suffix(1);
    return true;
  }

  bool texts(Value value, std::string_view what, std::vector<std::string_view>& out) {
    out.clear();
    return each(value, what, [&](size_t /*position*/, Value item) {
      if (auto code = item.get_string().get(out.emplace_back())) return fail(code, entry_of(what), "a string");
      return true;
    });
  }

  static bool is_object(Value value) {
    simdjson::ondemand::json_type type{};
    return value.type().get(type) == simdjson::SUCCESS && type == simdjson::ondemand::json_type::object;
  }
  static bool is_null(Value value) {
    simdjson::ondemand::json_type type{};
    return value.type().get(type) == simdjson::SUCCESS && type == simdjson::ondemand::json_type::null;
  }

  // The columns of one group as they are read: their names and lengths.
  class ColumnGroup {
   public:
    explicit ColumnGroup(std::string_view name) : name_(name) {}
    bool add(std::string_view column, size_t length) {
      columns_.emplace_back(column, length);
      return true;
    }
    [[nodiscard]] std::string_view name() const { return name_; }
    [[nodiscard]] bool has(std::string_view column) const {
      return std::any_of(columns_.begin(), columns_.end(), [&](const auto& known) { return known.first == column; });
    }
    [[nodiscard]] const std::vector<std::pair<std::string_view, size_t>>& columns() const { return columns_; }

   private:
    std::string_view name_;
    std::vector<std::pair<std::string_view, size_t>> columns_;
  };

  // A column of whole numbers between `least` and `most`: a list of them or, in run/3, {"differences": [...]}, each to the
  // number before it (the first to 0).
  template <class T>
  bool column(Value value, ColumnGroup& group, std::string_view name, int64_t least, int64_t most,
              std::vector<T>& out) {
    out.clear();
    const bool read = numbers(value, name, [&](size_t position, int64_t number) {
      if (number < least || number > most) {
        return fail(fmt::format("entry {} is {}, not between {} and {}", position, number, least, most));
      }
      out.push_back(static_cast<T>(number));
      return true;
    });
    if (!read) return fail(fmt::format("{}.{}: {}", group.name(), name, complaint_));
    return group.add(name, out.size());
  }

  // Calls visit(index, number) -> bool for each number of a column, differences summed up.
  template <class Visit>
  bool numbers(Value value, std::string_view name, Visit visit) {
    const auto entry = [&](size_t position, Value item, int64_t& number) {
      const auto code = item.get_int64().get(number);
      return code == simdjson::SUCCESS || fail(code, fmt::format("entry {}", position), "a whole number");
    };
    if (!is_object(value)) {
      return each(value, name, [&](size_t position, Value item) {
        int64_t number = 0;
        return entry(position, item, number) && visit(position, number);
      });
    }
    return packed(value, "differences", [&](Value list) {
      int64_t sum = 0;
      return each(list, name, [&](size_t position, Value item) {
        int64_t difference = 0;
        if (!entry(position, item, difference)) return false;
        if (__builtin_add_overflow(sum, difference, &sum)) return fail("its differences add up to more than 2^63");
        return visit(position, sum);
      });
    });
  }

  // A packed column, {form: ...}: calls visit(value) -> bool for its only field.
  template <class Visit>
  bool packed(Value value, std::string_view form, Visit visit) {
    bool found = false;
    const bool read = each_field(value, "it", [&](std::string_view key, Value item) {
      if (key != form || found) {
        return fail(fmt::format("it is packed as \"{}\"; known: {}, once", key.substr(0, 60), form));
      }
      found = true;
      return visit(item);
    });
    return read && (found || fail(fmt::format("it is an object without {}", form)));
  }

  // Whether the group has these columns, and all it has are of one length.
  bool complete(const ColumnGroup& group, std::initializer_list<std::string_view> needed) {
    for (const std::string_view name : needed) {
      if (!group.has(name)) return fail(fmt::format("{} lacks the column {}", group.name(), name));
    }
    for (const auto& [name, length] : group.columns()) {
      const auto& [first, expected] = group.columns().front();
      if (length != expected) {
        return fail(
            fmt::format("{}: column {} has {} entries, but {} has {}", group.name(), name, length, first, expected));
      }
    }
    return true;
  }

  // A letter of the input in a complaint: control characters and parts of UTF-8 sequences do not show.
  static std::string printable(char letter) {
    return letter >= 0x20 && letter < 0x7f ? std::string(1, letter)
                                           : fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
  }

  // A value by its name; a complaint that lists the known names otherwise.
  template <class Enum>
  bool named(std::string_view what, std::string_view name, std::optional<Enum> value, std::string_view known,
             Enum& out) {
    if (!value) return fail(fmt::format("{} is \"{}\"; known: {}", what, name.substr(0, 60), known));
    out = *value;
    return true;
  }

  static std::string entry_of(std::string_view table) { return fmt::format("an entry of {}", table); }

  static std::string known_dtypes() {
    std::string known;
    for (size_t i = 0; i <= static_cast<size_t>(DType::complex128); ++i) {
      if (i > 0) known += ", ";
      known += name_of(static_cast<DType>(i));
    }
    return known;
  }

 private:
  std::string complaint_;
};

}  // namespace forerun
