// OutputFile: a file that is written whole or not at all.
//
// What is written goes to a file of its own beside the target (NAME.partial-PID-N), reaches the disk (fsync), and takes the
// target's place in finish(): who reads sees the file as it was or as it is meant to be, also where the disk is full or two
// programs write at once. A writer that is dropped before finish() removes what it wrote, and so does a signal that ends the
// program, where main() asked for it (base/partial_files.h). Links are followed; a file that is there keeps its
// permissions. What is no plain file (/dev/stdout, a pipe, a device) is written as it comes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace forerun {

class OutputFile {
 public:
  struct Options {
    bool overwrite = true;  // without it, a file that is there already is an Error
  };

  static Result<OutputFile> create(const std::string& path, Options options);
  static Result<OutputFile> create(const std::string& path) { return create(path, Options{}); }

  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  ~OutputFile();

  // Adds bytes. After an Error nothing more is written.
  Status write(std::string_view bytes);
  // Closes the file and gives it its name.
  Status finish();

  [[nodiscard]] const std::string& path() const;

 private:
  struct State;
  explicit OutputFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The whole file at once.
Status write_whole_file(const std::string& path, std::string_view bytes);

// /dev/stdout, /dev/fd/3: the descriptor that a name stands for, which is written where it stands: opening the name of a
// plain file anew would write over what was printed.
std::optional<int> descriptor_named(const std::string& path);

// What an errno of opening or writing a file means, and what to do about it.
Error file_error(std::string_view what, const std::string& path, int code);

}  // namespace forerun
