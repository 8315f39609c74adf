// AnswerCache: the answers given last, by what they depend on. The same question has the same answer, to the bit, as long as program,
// data and the machine's calibration are the same, which are part of the key.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace forerun::serve {

class AnswerCache {
 public:
  explicit AnswerCache(size_t most_bytes) : most_bytes_(most_bytes) {}

  std::optional<std::string> find(const std::string& key);
  // What was asked for longest ago makes room. An answer larger than a sixteenth of all is not kept.
  void keep(const std::string& key, const std::string& answer);

 private:
  struct Entry {
    std::string key, answer;
  };
  std::mutex busy_;
  std::list<Entry> entries_;  // asked for last comes first
  std::map<std::string, std::list<Entry>::iterator> by_key_;
  size_t bytes_ = 0, most_bytes_;
};

}  // namespace forerun::serve
