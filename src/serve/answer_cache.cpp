#include "serve/answer_cache.h"

namespace forerun::serve {

std::optional<std::string> AnswerCache::find(const std::string& key) {
  const std::lock_guard lock(busy_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->answer;
}

void AnswerCache::keep(const std::string& key, const std::string& answer) {
  const std::lock_guard lock(busy_);
  if (answer.size() > most_bytes_ / 16 || by_key_.contains(key)) return;
  entries_.push_front({key, answer});
  by_key_[key] = entries_.begin();
  bytes_ += answer.size();
  while (bytes_ > most_bytes_) {
    bytes_ -= entries_.back().answer.size();
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

}  // namespace forerun::serve
