// JsonObject: reads small JSON files (catalogues, constants) field by field, with Errors that name file and field.
//
// The first fault is kept and later reads return harmless values, so a loader reads everything and asks `status()`
// once.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace forerun {

enum class Sign : uint8_t { positive, not_negative };

class JsonObject {
 public:
  static constexpr size_t kLargestFile = size_t{16} << 20;  // bytes; the largest of data/ has some hundred thousand

  // The whole file, which must hold one JSON object of at most kLargestFile bytes.
  static Result<JsonObject> read(const std::filesystem::path& path);
  // The same from text; `where` stands in for the file's name.
  static Result<JsonObject> parse(const std::string& text, const std::string& where);

  [[nodiscard]] bool has(const std::string& field) const;
  // A finite number of the given sign; the field must be there.
  double number(const std::string& field, Sign sign = Sign::positive);
  double number_or(const std::string& field, double otherwise, Sign sign = Sign::positive);
  int64_t integer(const std::string& field, Sign sign = Sign::positive);
  std::string text(const std::string& field);
  std::string any_text(const std::string& field);  // which may be empty
  bool flag(const std::string& field);
  std::vector<std::string> texts(const std::string& field);   // a list of strings; empty where the field is missing
  JsonObject object(const std::string& field);                // shares this object's fault
  std::vector<JsonObject> objects(const std::string& field);  // a list of objects
  [[nodiscard]] std::vector<std::string> keys() const;

  void fail(const std::string& field, const std::string& what, const std::string& remedy = "");
  [[nodiscard]] Status status() const;

 private:
  using Fault = std::shared_ptr<std::optional<Error>>;
  using Value = std::shared_ptr<const nlohmann::json>;  // shared, so that this header needs no nlohmann::json
  JsonObject(Value value, std::string file, std::string path, Fault fault)
      : value_(std::move(value)), file_(std::move(file)), path_(std::move(path)), fault_(std::move(fault)) {}
  const nlohmann::json* find(const std::string& field);
  double checked(const std::string& field, const nlohmann::json& value, Sign sign);

  Value value_;
  std::string file_;
  std::string path_;  // of this object within the file: "peak.fp32."
  Fault fault_;
};

}  // namespace forerun
