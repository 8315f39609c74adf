// PartSet: the parts of all shards of a question, to be read as one machine would have answered it: in the order of the cases,
// none missing, none twice.
//
// Rows stay in the files until they are asked for; what is held is where each stands, 24 bytes a case.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/shard.h"

namespace forerun {

class PartSet {
 public:
  // An Error names what is missing, given twice, or of another question than the first.
  static Result<PartSet> open(const std::vector<std::string>& paths, const std::string& verb);

  PartSet(PartSet&& other) noexcept;
  PartSet& operator=(PartSet&&) = delete;
  ~PartSet();

  [[nodiscard]] const ShardedWork& work() const { return work_; }
  [[nodiscard]] size_t size() const { return work_.cases; }
  [[nodiscard]] size_t not_whole() const {
    return not_whole_;
  }  // lines that were passed over; their cases are there as well
  // The answer to a case, as it was added.
  [[nodiscard]] Result<std::string> row(size_t number) const;

 private:
  struct Found {
    size_t number = 0;
    uint64_t at = 0;
    size_t length = 0;
  };
  struct Part {
    std::string path;
    int file = -1;  // -1: opened when it is read
    Shard shard;
    std::vector<Found> found;  // by number
  };

  PartSet() = default;
  Status add(const std::string& path, const std::string& verb);
  Status take_once(Part& part) const;
  [[nodiscard]] Status check_complete() const;
  static Result<std::string> read(const Part& part, const Found& found);

  ShardedWork work_;
  std::vector<Part> parts_;  // by shard
  size_t not_whole_ = 0;
};

}  // namespace forerun
