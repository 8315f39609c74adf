#include "base/line_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#if __has_include(<zlib.h>)
#include <zlib.h>
#define FORERUN_HAS_ZLIB 1
#else
#define FORERUN_HAS_ZLIB 0
#endif

namespace forerun {

#if FORERUN_HAS_ZLIB

// zlib's own file reading: it looks at the first bytes and passes on what is not gzip as it is.
class LineReader::Source {
 public:
  static Result<std::unique_ptr<Source>> open(const std::string& path) {
    errno = 0;
    gzFile file = gzopen(path.c_str(), "rb");
    if (file == nullptr) {
      return Error{fmt::format("cannot be opened: {}", std::strerror(errno == 0 ? ENOMEM : errno)), path,
                   "check the path and its permissions"};
    }
    gzbuffer(file, 1U << 20);
    return std::unique_ptr<Source>(new Source(file));
  }
  ~Source() { gzclose(file_); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Reads up to `size` bytes; 0 at the end of the file.
  Result<size_t> read(char* into, size_t size) {
    errno = 0;
    const int count = gzread(file_, into, static_cast<unsigned>(std::min<size_t>(size, 1U << 30)));
    int code = Z_OK;
    const char* text = gzerror(file_, &code);
    if (count > 0 && code != Z_DATA_ERROR)
      return static_cast<size_t>(count);  // a truncated end is told at the next call
    if (code == Z_OK || code == Z_STREAM_END) return static_cast<size_t>(std::max(count, 0));
    if (code == Z_BUF_ERROR) {
      return Error{"the gzip data ends too early", "", "the file is truncated: copy or download it again"};
    }
    if (code == Z_ERRNO) return Error{fmt::format("cannot be read: {}", std::strerror(errno)), "", "check the path"};
    return Error{fmt::format("the gzip data is corrupt ({})", text), "", "copy or download the file again"};
  }

 private:
  explicit Source(gzFile file) : file_(file) {}
  gzFile file_;
};

#else

class LineReader::Source {
 public:
  static Result<std::unique_ptr<Source>> open(const std::string& path) {
    std::FILE* file = std::fopen(path.c_str(), "rb");
    if (file == nullptr) {
      return Error{fmt::format("cannot be opened: {}", std::strerror(errno)), path,
                   "check the path and its permissions"};
    }
    return std::unique_ptr<Source>(new Source(file));
  }
  ~Source() { std::fclose(file_); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  Result<size_t> read(char* into, size_t size) {
    const size_t count = std::fread(into, 1, size, file_);
    if (count == 0 && std::ferror(file_) != 0) {
      return Error{fmt::format("cannot be read: {}", std::strerror(errno)), "", "check the path"};
    }
    if (first_ && count >= 2 && std::memcmp(into, "\x1f\x8b", 2) == 0) {
      return Error{"is a gzip file, and this build has no zlib", "", "decompress it with gunzip"};
    }
    first_ = false;
    return count;
  }

 private:
  explicit Source(std::FILE* file) : file_(file) {}
  std::FILE* file_;
  bool first_ = true;
};

#endif

LineReader::LineReader(std::unique_ptr<Source> source, std::string name, Options options)
    : source_(std::move(source)), name_(std::move(name)), options_(options) {}
LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;
LineReader::~LineReader() = default;

Result<LineReader> LineReader::open(const std::string& path, Options options) {
  auto source = Source::open(path);
  if (!source) return source.error();
  return LineReader(std::move(*source), path, options);
}

LineReader LineReader::from_text(std::string_view text, std::string name, Options options) {
  LineReader reader(nullptr, std::move(name), options);
  reader.buffer_ = std::make_unique<char[]>(text.size() + kPadding);
  std::copy(text.begin(), text.end(), reader.buffer_.get());
  reader.capacity_ = text.size();
  reader.end_ = text.size();
  return reader;
}

// An error ends the reading: later calls find nothing more.
Error LineReader::finished(const Error& error) {
  source_.reset();
  begin_ = end_ = 0;
  return error.where.empty() ? error.within(name_) : error;
}

Status LineReader::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == capacity_) {
    const size_t grown = std::max(options_.first_buffer, 2 * capacity_);
    auto larger = std::make_unique_for_overwrite<char[]>(grown + kPadding);
    std::memset(larger.get() + grown, 0, kPadding);
    if (end_ > 0) std::memcpy(larger.get(), buffer_.get(), end_);
    buffer_ = std::move(larger);
    capacity_ = grown;
  }
  auto count = source_->read(buffer_.get() + end_, capacity_ - end_);
  if (!count) return count.error();
  if (*count == 0) source_.reset();
  end_ += *count;
  return {};
}

Result<std::optional<std::string_view>> LineReader::give(size_t length, size_t consumed) {
  const char* start = buffer_.get() + begin_;
  if (length > options_.longest_line) {
    return finished({fmt::format("line {} is longer than {} bytes", line_number_ + 1, options_.longest_line), "",
                     "split it into several lines, one record each"});
  }
  begin_ += consumed;
  ++line_number_;
  if (length > 0 && start[length - 1] == '\r') --length;
  return std::optional<std::string_view>(std::string_view(start, length));
}

Result<std::optional<std::string_view>> LineReader::next() {
  size_t searched = 0;  // of what lies between begin_ and end_
  while (true) {
    const size_t held = end_ - begin_;
    const void* newline =
        held > searched ? std::memchr(buffer_.get() + begin_ + searched, '\n', held - searched) : nullptr;
    if (newline != nullptr) {
      const auto length = static_cast<size_t>(static_cast<const char*>(newline) - (buffer_.get() + begin_));
      return give(length, length + 1);
    }
    searched = held;
    if (source_ == nullptr) {
      if (held == 0) return std::optional<std::string_view>();
      return give(held, held);
    }
    if (held > options_.longest_line) return give(held, held);  // too long already: an Error
    if (Status status = fill(); !status.ok()) return finished(status.error());
  }
}

}  // namespace forerun
