// LineReader: the lines of a text file, plain, gzip or Zstandard, one at a time in bounded memory.
//
// Compression is told by the first bytes, not by the file's name (base/byte_source.h). A byte order mark before the first
// line is passed over. A line ends at "\n" or "\r\n"; the last one may lack it. A file that cannot be read to its end
// (truncated, corrupt, a directory, a line of more than 64 MiB) is an Error, once: nothing follows it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/byte_source.h"
#include "base/result.h"

namespace forerun {

class LineReader {
 public:
  // Bytes that may be read (not relied upon) beyond the end of every line: what simdjson asks of its input.
  static constexpr size_t kPadding = 64;
  // The longest lines are run records: 2 MB for the largest models of the zoo.
  static constexpr size_t kLongestLine = size_t{64} << 20;

  struct Options {
    size_t longest_line = kLongestLine;
    size_t first_buffer = size_t{4} << 20;
    ByteSource::Archives archives = ByteSource::Archives::refused;
  };

  static Result<LineReader> open(const std::string& path, Options options);
  static Result<LineReader> open(const std::string& path) { return open(path, Options()); }
  // Lines of text in memory (never taken for compressed); `name` stands for the file in errors.
  static LineReader from_text(std::string_view text, std::string name, Options options);
  static LineReader from_text(std::string_view text, std::string name) {
    return from_text(text, std::move(name), Options());
  }

  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;
  ~LineReader();

  // The next line without its end, valid until the next call; nothing at the end of the file.
  Result<std::optional<std::string_view>> next();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int64_t line_number() const { return line_number_; }  // of the line next() gave last, from 1
  [[nodiscard]] bool line_ended() const { return line_ended_; }       // false: the file ended before that line did

 private:
  LineReader(std::unique_ptr<ByteSource> source, std::string name, Options options);

  static constexpr size_t kCheckedLine = size_t{1} << 20;  // lines of fewer bytes are for their readers to judge

  void pass_byte_order_mark();
  [[nodiscard]] Status check_text() const;
  Status fill();  // appends to the buffer, growing it where the current line fills it
  Error finished(const Error& error);
  Result<std::optional<std::string_view>> give(size_t length, size_t consumed);

  std::unique_ptr<ByteSource> source_;  // null: all there is stands in the buffer
  std::string name_;
  Options options_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;  // without the padding
  size_t begin_ = 0;     // of what has not been given out yet
  size_t end_ = 0;
  int64_t line_number_ = 0;
  bool line_ended_ = true;
};

// Whether a line holds nothing but white space.
inline bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace forerun
