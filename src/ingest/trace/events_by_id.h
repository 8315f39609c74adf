// EventsById: finds an event by an id of the file. Ids mostly are dense, so a plain table serves; otherwise sorted pairs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "ingest/trace/trace.h"

namespace forerun {

class EventsById {
 public:
  // Before close().
  void add(int64_t id, EventIndex event) { pairs_.emplace_back(id, event); }

  void close() {
    if (pairs_.empty()) return;
    const auto [least, most] = std::minmax_element(pairs_.begin(), pairs_.end());
    least_ = least->first;
    const auto range = static_cast<uint64_t>(most->first) - static_cast<uint64_t>(least_);
    if (range < 8 * pairs_.size() + 1024) {
      table_.assign(range + 1, kNoIndex);
      for (const auto& [id, event] : pairs_) {
        EventIndex& slot = table_[static_cast<uint64_t>(id) - static_cast<uint64_t>(least_)];
        if (slot == kNoIndex) slot = event;
      }
      pairs_ = {};
    } else {
      std::sort(pairs_.begin(), pairs_.end());
    }
  }

  // The first event added with the id.
  [[nodiscard]] EventIndex find(int64_t id) const {
    if (!table_.empty()) {
      const uint64_t offset = static_cast<uint64_t>(id) - static_cast<uint64_t>(least_);
      return id >= least_ && offset < table_.size() ? table_[offset] : kNoIndex;
    }
    const auto found = std::lower_bound(pairs_.begin(), pairs_.end(), std::pair(id, EventIndex{0}));
    return found != pairs_.end() && found->first == id ? found->second : kNoIndex;
  }

 private:
  std::vector<std::pair<int64_t, EventIndex>> pairs_;
  std::vector<EventIndex> table_;
  int64_t least_ = 0;
};

}  // namespace forerun
