// Uploads: files that users bring, in a folder of their own, each named by the SHA-256 of its bytes.
//
// Bytes go to disk as they come, within limits of one file and of all. What was not brought to its end is not there. The store has
// what is known of each.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/output_file.h"
#include "base/result.h"
#include "serve/sha256.h"
#include "store/random_hex.h"

namespace forerun::serve {

class Uploads;

// One that comes in.
class IncomingUpload {
 public:
  IncomingUpload(Uploads& uploads, std::string path, OutputFile file);
  ~IncomingUpload();
  IncomingUpload(const IncomingUpload&) = delete;
  IncomingUpload& operator=(const IncomingUpload&) = delete;
  Status write(std::string_view bytes);
  struct Finished {
    std::string id;
    int64_t bytes = 0;
  };
  Result<Finished> finish();

 private:
  Uploads& uploads_;
  std::string path_;
  OutputFile file_;
  Sha256 hash_;
  int64_t bytes_ = 0;
  bool kept_ = false;
};

class Uploads {
 public:
  struct Limits {
    int64_t one = int64_t{4} << 30, all = int64_t{16} << 30;
  };
  // Makes the folder, for its owner alone, and counts what is there.
  static Result<std::unique_ptr<Uploads>> open(const std::string& folder, Limits limits);
  Uploads(std::string folder, Limits limits, int64_t held) : folder_(std::move(folder)), limits_(limits), held_(held) {}

  Result<std::unique_ptr<IncomingUpload>> begin();
  [[nodiscard]] bool has(const std::string& id) const;
  [[nodiscard]] std::string path(const std::string& id) const { return folder_ + "/" + id; }
  bool remove(const std::string& id);
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] int64_t held() const { return held_; }

 private:
  friend class IncomingUpload;
  std::string folder_;
  Limits limits_;
  std::atomic<int64_t> held_;  // bytes
};

// A file's name as it is shown: printable, without what would need quoting, at most 100 bytes.
std::string shown_name(std::string_view name);

}  // namespace forerun::serve
