// JsonOutline: the keys that JSON text begins with, however broken or cut short the rest is.
//
// Of an object its own keys, of a list those of its first element where that is an object, each with how its value
// begins:
//   {"schema": "run/2", "id": "a", ... -> schema: "run/2", id: "a"
// Left out: keys of what lies deeper, and everything behind the first object (the further lines of JSON Lines).
#pragma once

#include <string_view>
#include <vector>

namespace forerun {

struct JsonOutline {
  struct Field {
    std::string_view key;    // as it stands in the text, escapes and all
    std::string_view value;  // from its first character on, cut at 64
  };
  bool is_object = false;
  bool is_list = false;
  std::vector<Field> fields;  // the first 64

  [[nodiscard]] bool has(std::string_view key) const;
  // The value of a key where it is a string, without its quotes; empty where it is none, or missing.
  [[nodiscard]] std::string_view text(std::string_view key) const;
};

JsonOutline json_outline(std::string_view beginning);

}  // namespace forerun
