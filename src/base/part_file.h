// PartFile: what one shard has done of a question, each case on disk before it counts as done.
//
// Opened again, after whatever ended it, it goes on: the cases that it holds are not done again, and a last line that was not
// written to its end is taken off. A file that holds anything else (another question, another shard, somebody's notes) is an
// Error and stays as it is. One process at a time writes it: it is locked while it is open.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/shard.h"
#include "base/work_control.h"

namespace forerun {

class PartFile {
 public:
  static Result<PartFile> open(const std::string& path, const ShardedWork& work, const Shard& shard);

  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile();

  [[nodiscard]] size_t cases() const { return done_.size(); }  // of this shard
  [[nodiscard]] size_t found() const { return found_; }        // that were done when it was opened
  [[nodiscard]] std::vector<size_t> missing() const;           // numbers of those that are not done

  // Adds the answer to a case, JSON in one line, and sees it to the disk. From one thread at a time.
  Status add(size_t number, std::string_view row);

 private:
  PartFile(std::string path, int file, const Shard& shard, size_t cases);
  Status begin(const std::string& head);
  Status read(const ShardedWork& work);
  Status append(std::string_view line);

  std::string path_;
  int file_;
  Shard shard_;
  std::vector<bool> done_;  // by place in the shard
  size_t found_ = 0;
  uint64_t size_ = 0;  // of what is whole
};

// Does what the part is missing, on several threads (0: as many as the machine has); cases are added as they end. `answer` is asked
// from several threads at once. Its first Error ends the work and is the answer: what was added before stays.
using CaseAnswer = std::function<Result<std::string>(size_t number)>;
Status do_missing(PartFile& part, size_t threads, Work& work, const CaseAnswer& answer);

}  // namespace forerun
