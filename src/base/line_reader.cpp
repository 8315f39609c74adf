#include "base/line_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace forerun {

LineReader::LineReader(std::unique_ptr<ByteSource> source, std::string name, Options options)
    : source_(std::move(source)), name_(std::move(name)), options_(options) {}
LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;
LineReader::~LineReader() = default;

Result<LineReader> LineReader::open(const std::string& path, Options options) {
  auto source = ByteSource::open(path, options.archives);
  if (!source) return source.error();
  return LineReader(std::move(*source), path, options);
}

LineReader LineReader::from_text(std::string_view text, std::string name, Options options) {
  LineReader reader(nullptr, std::move(name), options);
  reader.buffer_ = std::make_unique<char[]>(text.size() + kPadding);
  std::copy(text.begin(), text.end(), reader.buffer_.get());
  reader.capacity_ = text.size();
  reader.end_ = text.size();
  reader.pass_byte_order_mark();
  return reader;
}

// An error ends the reading: later calls find nothing more.
Error LineReader::finished(const Error& error) {
  source_.reset();
  begin_ = end_ = 0;
  return error.where.empty() ? error.within(name_) : error;
}

void LineReader::pass_byte_order_mark() {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (std::string_view(buffer_.get() + begin_, end_ - begin_).starts_with(kMark)) begin_ += kMark.size();
}

// Refuses a line that fills the buffer and has bytes that no text has, before more memory is spent on it.
Status LineReader::check_text() const {
  if (capacity_ < kCheckedLine || std::memchr(buffer_.get(), '\0', end_) == nullptr) return {};
  return Error{fmt::format("line {} holds NUL bytes: this is no text", line_number_ + 1), "",
               "copy the file again, or name a file of records"};
}

Status LineReader::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == capacity_) {
    if (Status status = check_text(); !status) return status;
    const size_t enough =
        std::max(options_.first_buffer, options_.longest_line + 2);  // tells a line too long from one that fits
    const size_t grown = std::min(enough, std::max(options_.first_buffer, 2 * capacity_));
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
  line_ended_ = consumed > length;
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
    const bool beginning = line_number_ == 0 && begin_ == 0 && held < 3;
    if (Status status = fill(); !status.ok()) return finished(status.error());
    if (beginning && end_ - begin_ >= 3) {
      pass_byte_order_mark();
      searched = 0;
    }
  }
}

}  // namespace forerun
