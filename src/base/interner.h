// StringTable: each distinct string once, named by a dense NameId in order of first sight.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/check.h"
#include "base/id.h"

namespace forerun {

using NameId = Id<struct NameTag>;

class StringTable {
 public:
  StringTable() = default;
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;
  // The index views strings owned by the deque, so a copy rebuilds it.
  StringTable(const StringTable& other) {
    for (const std::string& text : other.strings_) intern(text);
  }
  StringTable& operator=(const StringTable& other) {
    if (this != &other) *this = StringTable(other);
    return *this;
  }
  ~StringTable() = default;

  NameId intern(std::string_view text) {
    auto found = index_.find(text);
    if (found != index_.end()) return found->second;
    strings_.emplace_back(text);
    NameId id(strings_.size() - 1);
    index_.emplace(strings_.back(), id);
    return id;
  }

  // The id of a string that is already here, or an invalid one.
  [[nodiscard]] NameId find(std::string_view text) const {
    auto found = index_.find(text);
    return found == index_.end() ? NameId() : found->second;
  }

  [[nodiscard]] const std::string& operator[](NameId id) const {
    CHECK(id.value < strings_.size(), "NameId out of range");
    return strings_[id.value];
  }
  [[nodiscard]] size_t size() const { return strings_.size(); }

 private:
  std::deque<std::string> strings_;  // deque: growing does not move the strings that index_ points to
  std::unordered_map<std::string_view, NameId> index_;
};

}  // namespace forerun
