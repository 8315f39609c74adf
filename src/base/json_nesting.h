// JsonNesting: follows the brackets and strings of JSON text that comes in pieces, to tell a whole text from one cut short.
//
// It does not parse: what stands between the brackets may be anything.
#pragma once

#include <cstdint>
#include <string_view>

namespace forerun {

class JsonNesting {
 public:
  // `depth`: brackets that are open before the first piece.
  explicit JsonNesting(int64_t depth = 0) : depth_(depth), opened_(depth > 0) {}

  void read(std::string_view piece) {
    for (const char c : piece) read(c);
  }

  // Whether every bracket was closed; false before the first one.
  [[nodiscard]] bool closed() const { return opened_ && depth_ <= 0; }
  // Whether another list or object begins behind the end of the first.
  [[nodiscard]] bool goes_on() const { return goes_on_; }

 private:
  void read(char c) {
    if (within_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        within_string_ = false;
      }
    } else if (c == '{' || c == '[') {
      goes_on_ = goes_on_ || closed();
      opened_ = true;
      ++depth_;
    } else if (c == '}' || c == ']') {
      --depth_;
    } else if (c == '"') {
      within_string_ = true;
    }
  }

  int64_t depth_;
  bool opened_;
  bool within_string_ = false;
  bool escaped_ = false;
  bool goes_on_ = false;
};

}  // namespace forerun
