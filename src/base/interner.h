// StringTable: each distinct string once, named by a dense NameId in order of first sight.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/id.h"
#include "base/id_index.h"

namespace forerun {

using NameId = Id<struct NameTag>;

class StringTable {
 public:
  NameId intern(std::string_view text) {
    const uint64_t hash = std::hash<std::string_view>()(text);
    if (const NameId known = find(text, hash); known.valid()) return known;
    strings_.emplace_back(text);
    const NameId id(strings_.size() - 1);
    index_.add(hash, id.value);
    return id;
  }

  // The id of a string that is already here, or an invalid one.
  [[nodiscard]] NameId find(std::string_view text) const { return find(text, std::hash<std::string_view>()(text)); }

  [[nodiscard]] const std::string& operator[](NameId id) const {
    CHECK(id.value < strings_.size(), "NameId out of range");
    return strings_[id.value];
  }
  [[nodiscard]] size_t size() const { return strings_.size(); }

 private:
  [[nodiscard]] NameId find(std::string_view text, uint64_t hash) const {
    const uint32_t found = index_.find(hash, [&](uint32_t id) { return strings_[id] == text; });
    return found == IdIndex::kNone ? NameId() : NameId(found);
  }

  std::deque<std::string> strings_;  // deque: growing does not move strings that others look at
  IdIndex index_;
};

}  // namespace forerun
