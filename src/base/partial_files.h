// The unfinished files of this process, which a signal that ends it removes: kept so that a signal handler can read them.
#pragma once

#include <cstddef>
#include <string>

namespace forerun {

// Keeps the path of an unfinished file while it lives. Beyond 64 at once a path is not kept, and so may stay behind.
class PartialFile {
 public:
  explicit PartialFile(const std::string& path);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

 private:
  size_t slot_;
};

// Removes all files kept; only calls what a signal handler may call.
void remove_partial_files() noexcept;

// For main(): SIGINT, SIGTERM, SIGHUP and SIGPIPE, where they would end the program, remove what is unfinished first.
void remove_partial_files_on_signals();

}  // namespace forerun
