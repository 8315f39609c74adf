// LineAppender: adds lines to a file that others may add to at the same time, each line whole or not at all.
//
// The file is opened, and where need be made, before there is anything to add, so that one that cannot be written is found
// out early. A line that does not fit on the disk is taken back. A last line without an end (its writer was stopped) gets
// one, so that the new line is a line of its own.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace forerun {

class LineAppender {
 public:
  static Result<LineAppender> open(const std::string& path);

  LineAppender(LineAppender&& other) noexcept;
  LineAppender& operator=(LineAppender&&) = delete;
  ~LineAppender();  // a file that it made and added nothing to goes

  // Adds a line; its end is added here.
  Status append(std::string_view line);

 private:
  LineAppender(std::string path, int file, bool plain, bool made);
  std::string path_;
  int file_ = -1;
  bool plain_ = true;  // a plain file: what is added can be taken back
  bool made_ = false;  // by this one, and nothing was added yet
};

}  // namespace forerun
