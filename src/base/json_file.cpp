#include "base/json_file.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/small_file.h"

namespace forerun {

Result<JsonObject> JsonObject::read(const std::filesystem::path& path) {
  const Result<std::string> text =
      read_small_file(path, {kLargestFile, "name a JSON file of settings: such files have some kilobytes"});
  return text ? parse(*text, path.string()) : Result<JsonObject>(text.error());
}

Result<JsonObject> JsonObject::parse(const std::string& text, const std::string& where) {
  nlohmann::json value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return Error{"not valid JSON", where, "check brackets, commas and quotes"};
  if (!value.is_object()) return Error{"the file must hold one JSON object", where, ""};
  return JsonObject(std::make_shared<const nlohmann::json>(std::move(value)), where, "",
                    std::make_shared<std::optional<Error>>());
}

bool JsonObject::has(const std::string& field) const { return value_->contains(field); }

void JsonObject::fail(const std::string& field, const std::string& what, const std::string& remedy) {
  if (!fault_->has_value()) *fault_ = Error{what, file_ + ", " + path_ + field, remedy};
}

Status JsonObject::status() const { return fault_->has_value() ? Status(**fault_) : Status(); }

const nlohmann::json* JsonObject::find(const std::string& field) {
  const auto found = value_->find(field);
  if (found != value_->end()) return &*found;
  fail(field, "the field is missing", "add it to the file");
  return nullptr;
}

double JsonObject::checked(const std::string& field, const nlohmann::json& value, Sign sign) {
  if (!value.is_number()) {
    fail(field, "not a number");
    return 1;
  }
  const double number = value.get<double>();
  const bool fits = std::isfinite(number) && (sign == Sign::positive ? number > 0 : number >= 0);
  if (fits) return number;
  fail(field, sign == Sign::positive ? "must be finite and above 0" : "must be finite and not negative");
  return 1;
}

double JsonObject::number(const std::string& field, Sign sign) {
  const nlohmann::json* value = find(field);
  return value == nullptr ? 1 : checked(field, *value, sign);
}

double JsonObject::number_or(const std::string& field, double otherwise, Sign sign) {
  return has(field) ? number(field, sign) : otherwise;
}

int64_t JsonObject::integer(const std::string& field, Sign sign) {
  const double value = number(field, sign);
  if (value == std::floor(value) && value < 9e15) return static_cast<int64_t>(value);
  fail(field, "must be a whole number");
  return 1;
}

std::string JsonObject::text(const std::string& field) {
  const nlohmann::json* value = find(field);
  if (value == nullptr) return {};
  if (value->is_string() && !value->get_ref<const std::string&>().empty()) return value->get<std::string>();
  fail(field, "must be a string that is not empty");
  return {};
}

std::string JsonObject::any_text(const std::string& field) {
  const nlohmann::json* value = find(field);
  if (value != nullptr && value->is_string()) return value->get<std::string>();
  if (value != nullptr) fail(field, "must be a string");
  return {};
}

bool JsonObject::flag(const std::string& field) {
  const nlohmann::json* value = find(field);
  if (value != nullptr && value->is_boolean()) return value->get<bool>();
  if (value != nullptr) fail(field, "must be true or false");
  return false;
}

std::vector<std::string> JsonObject::texts(const std::string& field) {
  if (!has(field)) return {};
  const nlohmann::json& value = *find(field);
  std::vector<std::string> list;
  for (const auto& entry : value) {
    if (value.is_array() && entry.is_string()) list.push_back(entry.get<std::string>());
  }
  if (!value.is_array() || list.size() != value.size()) fail(field, "must be a list of strings");
  return list;
}

JsonObject JsonObject::object(const std::string& field) {
  const nlohmann::json* value = find(field);
  const bool sound = value != nullptr && value->is_object();
  if (!sound) fail(field, "must be an object");
  // What is found shares the tree that it is a part of.
  const Value part = sound ? Value(value_, value) : std::make_shared<const nlohmann::json>(nlohmann::json::object());
  return {part, file_, path_ + field + ".", fault_};
}

std::vector<JsonObject> JsonObject::objects(const std::string& field) {
  const nlohmann::json* value = find(field);
  std::vector<JsonObject> list;
  if (value == nullptr) return list;
  if (!value->is_array()) fail(field, "must be a list of objects");
  for (size_t i = 0; value->is_array() && i < value->size(); ++i) {
    const std::string place = field + "[" + std::to_string(i) + "]";
    if (!(*value)[i].is_object())
      fail(place, "must be an object");
    else
      list.push_back(JsonObject(Value(value_, &(*value)[i]), file_, path_ + place + ".", fault_));
  }
  return list;
}

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, unused] : value_->items()) names.push_back(key);
  return names;
}

}  // namespace forerun
