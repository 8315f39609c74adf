#include "ingest/json_outline.h"

#include <algorithm>

namespace forerun {
namespace {

constexpr size_t kMostFields = 64;
constexpr size_t kMostOfAValue = 64;

// Walks over text as far as it has the form of JSON.
class OutlineReader {
 public:
  explicit OutlineReader(std::string_view text) : text_(text) {}

  JsonOutline read() {
    JsonOutline outline;
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    pass_blanks();
    outline.is_object = at('{');
    outline.is_list = at('[');
    if (outline.is_list) {
      ++at_;
      pass_blanks();
    }
    if (!at('{')) return outline;
    ++at_;
    while (outline.fields.size() < kMostFields && read_field(outline)) {
    }
    return outline;
  }

 private:
  [[nodiscard]] bool at(char c) const { return at_ < text_.size() && text_[at_] == c; }

  void pass_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  // A key and its value; false at the end of the object, and where the text is cut or broken.
  bool read_field(JsonOutline& outline) {
    pass_blanks();
    if (!at('"')) return false;
    const size_t key = at_ + 1;
    if (!pass_string()) return false;
    const std::string_view name = text_.substr(key, at_ - 1 - key);
    pass_blanks();
    if (!at(':')) return false;
    ++at_;
    pass_blanks();
    outline.fields.push_back({name, text_.substr(at_, kMostOfAValue)});
    pass_value();
    pass_blanks();
    if (!at(',')) return false;
    ++at_;
    return true;
  }

  // From one quote behind the other; false where the text ends before it.
  bool pass_string() {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '"') {
        ++at_;
        return true;
      }
    }
    at_ = text_.size();
    return false;
  }

  void pass_value() {
    size_t depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        if (!pass_string()) return;
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}' || c == ']')) return;
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at_;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

bool JsonOutline::has(std::string_view key) const {
  return std::any_of(fields.begin(), fields.end(), [&](const Field& field) { return field.key == key; });
}

std::string_view JsonOutline::text(std::string_view key) const {
  for (const Field& field : fields) {
    if (field.key != key || !field.value.starts_with('"')) continue;
    const size_t end = field.value.find('"', 1);
    return end == std::string_view::npos ? std::string_view() : field.value.substr(1, end - 1);
  }
  return {};
}

JsonOutline json_outline(std::string_view beginning) { return OutlineReader(beginning).read(); }

}  // namespace forerun
