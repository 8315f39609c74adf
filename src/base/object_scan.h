// ObjectScan: follows one JSON object, whose text comes in pieces, to where it ends.
//
// Brackets, keys, colons and commas must stand where they belong; what a scalar is, and what stands within a string, is not looked
// at. So a text that is no JSON is found out at the first quote or bracket too many, and one that is, is never taken for another.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace forerun {

class ObjectScan {
 public:
  enum class State : unsigned char { open, closed, broken };

  // How many bytes of the piece were read: all of them while the object is open; up to behind its last bracket; or up to what
  // cannot stand where it does. None once it is not open any more.
  size_t read(std::string_view piece);
  [[nodiscard]] State state() const { return state_; }

 private:
  enum class Wanted : unsigned char { object, first_key, key, colon, first_element, value, separator };
  bool take(char c);        // false where it cannot stand here
  bool take_value(char c);  // of a member or an element
  bool close(char bracket);

  std::string closers_;  // of the brackets that are open
  Wanted wanted_ = Wanted::object;
  State state_ = State::open;
  bool within_string_ = false, within_scalar_ = false, escaped_ = false;
};

// Whether the text is one object, with nothing behind it but blanks, commas and the end of a list.
bool is_one_object(std::string_view text);

}  // namespace forerun
