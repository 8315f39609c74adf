// LineWriter: writes lines to a file, compressed as its name says (.gz, .zst, else plain), and whole or not at all.
//
// The file takes its place in finish() (base/output_file.h); a writer that is dropped before leaves an earlier one as it was.
// Zstandard at level 19 with a window of 128 MiB, which finds what repeats from record to record, takes about half a
// gigabyte of memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/output_file.h"
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
  LineWriter(OutputFile file, std::unique_ptr<Sink> sink);
  OutputFile file_;
  std::unique_ptr<Sink> sink_;
};

}  // namespace forerun
