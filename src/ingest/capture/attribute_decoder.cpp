#include "ingest/capture/attribute_decoder.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <string>

namespace forerun {
namespace {

namespace dom = simdjson::dom;

template <class To, class From>
AttributeValue list_of(const dom::array& array) {
  std::vector<To> list;
  for (const dom::element element : array) {
    From value{};
    if (element.get(value) != simdjson::SUCCESS) return JsonText{simdjson::minify(array)};
    list.push_back(static_cast<To>(value));
  }
  return list;
}

AttributeValue value_of(const dom::array& array) {
  bool whole = true;
  bool numbers = true;
  bool flags = true;
  for (const dom::element element : array) {
    whole = whole && element.is_int64();
    numbers = numbers && element.is_number();
    flags = flags && element.is_bool();
  }
  if (whole) return list_of<int64_t, int64_t>(array);
  if (numbers) return list_of<double, double>(array);
  if (flags) return list_of<bool, bool>(array);
  return JsonText{simdjson::minify(array)};
}

AttributeValue value_of(const dom::element& element) {
  switch (element.type()) {
    case dom::element_type::NULL_VALUE: return std::monostate();
    case dom::element_type::BOOL: return element.get_bool().value_unsafe();
    case dom::element_type::INT64: return element.get_int64().value_unsafe();
    case dom::element_type::UINT64: return static_cast<double>(element.get_uint64().value_unsafe());
    case dom::element_type::DOUBLE: return element.get_double().value_unsafe();
    case dom::element_type::STRING: return std::string(element.get_string().value_unsafe());
    case dom::element_type::ARRAY: return value_of(element.get_array().value_unsafe());
    case dom::element_type::OBJECT: return JsonText{simdjson::minify(element)};
  }
  return std::monostate();
}

// The text with Infinity and -Infinity, where they stand outside strings, put in quotes.
std::string quote_infinity(std::string_view text) {
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\') out += text[i++];
    if (i >= text.size()) break;
    const std::string_view rest = text.substr(i);
    const std::string_view word = rest.starts_with("-Infinity")  ? rest.substr(0, 9)
                                  : rest.starts_with("Infinity") ? rest.substr(0, 8)
                                                                 : std::string_view();
    if (in_string || word.empty()) {
      out += text[i];
    } else {
      out += '"';
      out += word;
      out += '"';
      i += word.size() - 1;
    }
  }
  return out;
}

}  // namespace

struct AttributeDecoder::Parser {
  dom::parser dom;
};

AttributeDecoder::AttributeDecoder() : parser_(std::make_unique<Parser>()) {}
AttributeDecoder::AttributeDecoder(AttributeDecoder&&) noexcept = default;
AttributeDecoder& AttributeDecoder::operator=(AttributeDecoder&&) noexcept = default;
AttributeDecoder::~AttributeDecoder() = default;

Result<Attributes> AttributeDecoder::decode(std::string_view object_text) {
  dom::object object;
  auto code = parser_->dom.parse(object_text.data(), object_text.size()).get(object);
  if (code != simdjson::SUCCESS && object_text.find("Infinity") != std::string_view::npos) {
    const std::string quoted = quote_infinity(object_text);
    code = parser_->dom.parse(quoted.data(), quoted.size()).get(object);
  }
  if (code == simdjson::INCORRECT_TYPE) return Error{"is not a JSON object", "", ""};
  if (code != simdjson::SUCCESS) {
    const bool nan = object_text.find("NaN") != std::string_view::npos;
    const auto start = object_text.substr(0, 60);
    return Error{nan ? fmt::format("holds NaN, which is no number: {}", start)
                     : fmt::format("is not valid JSON ({}): {}", simdjson::error_message(code), start),
                 "", ""};
  }
  Attributes attributes;
  for (const auto& [key, value] : object) attributes.set(std::string(key), value_of(value));
  return attributes;
}

}  // namespace forerun
