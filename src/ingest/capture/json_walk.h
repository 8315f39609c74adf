// JsonWalk: steps through simdjson's on-demand values, keeping the first complaint.
//
// Every step returns whether it succeeded; after a failure the document must not be touched again. Included by .cpp
// files alone, so that simdjson stays out of the other headers.
#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

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

  // A value by its name; a complaint that lists the known names otherwise.
  template <class Enum>
  bool named(std::string_view what, std::string_view name, std::optional<Enum> value, std::string_view known,
             Enum& out) {
    if (!value) return fail(fmt::format("{} is \"{}\"; known: {}", what, name.substr(0, 60), known));
    out = *value;
    return true;
  }

 private:
  std::string complaint_;
};

}  // namespace forerun
