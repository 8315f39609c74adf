// LineWriter: writes lines to a file, compressed as its name says (.gz, .zst, else plain), and whole or not at all.
//
// The lines go to NAME.partial, which takes the file's place in finish(): who reads it sees the old file or the new one.
// A writer that is dropped before leaves the old file as it was and removes its own. Zstandard at level 19 with a window
// of 128 MiB, which finds what repeats from record to record, takes about half a gigabyte of memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace forerun {

class LineWriter {
 public:
  struct Options {
    bool overwrite = false;  // without it, a file that is there already is an Error
    int zstd_level = 19;
  };

  static Result<LineWriter> create(const std::string& path, Options options);

  LineWriter(LineWriter&&) noexcept;
  LineWriter& operator=(LineWriter&&) noexcept;
  ~LineWriter();

  // Adds a line; its end is added here. After an Error nothing more is written.
  Status write(std::string_view line);
  // Closes the file and gives it its name.
  Status finish();

 private:
  class Sink;
  class PlainSink;
  class GzipSink;
  class ZstdSink;
  struct File;
  LineWriter(std::unique_ptr<File> file, std::unique_ptr<Sink> sink);
  std::unique_ptr<File> file_;
  std::unique_ptr<Sink> sink_;
};

}  // namespace forerun
