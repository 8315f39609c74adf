#include "base/line_appender.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/output_file.h"

namespace forerun {
namespace {

// errno of what went wrong, 0 where all is written.
int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

}  // namespace

LineAppender::LineAppender(std::string path, int file, bool plain, bool made)
    : path_(std::move(path)), file_(file), plain_(plain), made_(made) {}

LineAppender::LineAppender(LineAppender&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      plain_(other.plain_),
      made_(std::exchange(other.made_, false)) {}

LineAppender::~LineAppender() {
  if (file_ < 0) return;
  struct stat found {};
  if (made_ && ::fstat(file_, &found) == 0 && found.st_size == 0) ::unlink(path_.c_str());
  ::close(file_);
}

Result<LineAppender> LineAppender::open(const std::string& path) {
  int file = -1;
  bool made = false;
  if (const auto descriptor = descriptor_named(path)) {
    file = ::fcntl(*descriptor, F_DUPFD_CLOEXEC, 3);
  } else {
    constexpr int kAppend = O_APPEND | O_CLOEXEC;
    // Read too, to see how the last line ends; a pipe is only written.
    struct stat found {};
    const bool special = ::stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode);
    file = ::open(path.c_str(), (special ? O_WRONLY : O_RDWR) | kAppend);
    if (file < 0 && errno == ENOENT) {
      file = ::open(path.c_str(), O_RDWR | O_CREAT | kAppend, 0666);
      made = file >= 0;
    }
  }
  if (file < 0) return file_error("cannot be opened for writing", path, errno);
  struct stat found {};
  const bool plain = ::fstat(file, &found) == 0 && S_ISREG(found.st_mode) && !descriptor_named(path);
  return LineAppender(path, file, plain, made);
}

Status LineAppender::append(std::string_view line) {
  if (plain_) ::flock(file_, LOCK_EX);
  struct stat before {};
  std::string bytes;
  char last = '\n';
  if (plain_ && ::fstat(file_, &before) == 0 && before.st_size > 0 &&
      ::pread(file_, &last, 1, before.st_size - 1) == 1 && last != '\n') {
    bytes = "\n";
  }
  bytes.append(line);
  bytes += '\n';
  int code = write_all(file_, bytes);
  if (plain_ && code == 0 && ::fsync(file_) != 0 && (errno == EIO || errno == ENOSPC || errno == EDQUOT)) code = errno;
  if (plain_ && code != 0 && ::ftruncate(file_, before.st_size) != 0) code = errno;
  if (plain_) ::flock(file_, LOCK_UN);
  if (code != 0) return file_error("cannot be written", path_, code);
  made_ = false;
  return {};
}

}  // namespace forerun
