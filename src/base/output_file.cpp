#include "base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/partial_files.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

constexpr size_t kOutputBuffer = size_t{1} << 18;
constexpr size_t kLongestStem = 200;  // of 255 that file systems allow: the ending of the unfinished file comes behind
constexpr int kMostLinks = 40;        // as the kernel follows

// The file that a name leads to, over links; it need not be there.
fs::path followed(const std::string& path) {
  fs::path at = path;
  std::error_code none;
  for (int links = 0; links < kMostLinks && fs::is_symlink(at, none); ++links) {
    const fs::path next = fs::read_symlink(at, none);
    if (none) break;
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  return at;
}

// A new file beside the target, with a name that no other writer has.
int open_beside(const fs::path& target, std::string& name) {
  const std::string stem = target.filename().string().substr(0, kLongestStem);
  for (int number = 0; number < 10'000; ++number) {
    name = (target.parent_path() / fmt::format("{}.partial-{}-{}", stem, getpid(), number)).string();
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

const char* file_remedy(int code) {
  switch (code) {
    case ENOENT:
    case ENOTDIR: return "name a file in a folder that is there";
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return "make free space, or name a file on another disk";
    case EACCES:
    case EPERM:
    case EROFS: return "name a file where you may write";
    default: return "check the folder, the permissions and the free space";
  }
}

Error exists_already(const std::string& path) {
  return {"exists already", path, "choose another name, or overwrite it with --force"};
}

}  // namespace

std::optional<int> descriptor_named(const std::string& path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int number = -1;
    const auto [end, fault] = std::from_chars(path.data() + folder.size(), path.data() + path.size(), number);
    if (fault == std::errc() && end == path.data() + path.size() && number >= 0) return number;
  }
  return std::nullopt;
}

Error file_error(std::string_view what, const std::string& path, int code) {
  return {fmt::format("{}: {}", what, std::strerror(code)), path, file_remedy(code)};
}

struct OutputFile::State {
  std::string path;    // as it was given
  std::string target;  // the file it leads to; empty: written as it comes
  std::string partial;
  std::optional<PartialFile> kept;
  int file = -1;
  std::string buffer;
  bool overwrite = true;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (file >= 0) ::close(file);
    if (!partial.empty()) ::unlink(partial.c_str());
  }

  Status open_as_it_is(int descriptor) {
    file = descriptor;
    if (file < 0) return file_error("cannot be written", path, errno);
    return {};
  }

  Status open_partial(const struct stat* there) {
    target = followed(path).string();
    if (there != nullptr && ::access(target.c_str(), W_OK) != 0) return file_error("cannot be written", path, errno);
    file = open_beside(target, partial);
    if (file < 0) {
      const int code = errno;
      partial.clear();
      return file_error("cannot be created", path, code);
    }
    kept.emplace(partial);
    if (there != nullptr) ::fchmod(file, there->st_mode & 0777);  // some file systems have no permissions
    return {};
  }

  Status put(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::write(file, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return file_error("cannot be written", path, errno);
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return {};
  }

  Status flush() {
    Status status = put(buffer);
    buffer.clear();
    return status;
  }

  Status close_file() {
    const bool closed = ::close(file) == 0;
    file = -1;
    if (!closed && errno != EINTR) return file_error("cannot be written", path, errno);
    return {};
  }

  Status sync_file() const {
    const bool lost = ::fsync(file) != 0 && (errno == EIO || errno == ENOSPC || errno == EDQUOT);
    if (lost) return file_error("cannot be written", path, errno);
    return {};  // others: its file system cannot
  }

  // Where it must not overwrite, a file that came into being since is not overwritten either.
  Status put_in_place() const {
    if (!overwrite) {
      if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0) return {};
      if (errno == EEXIST) return exists_already(path);
      if (errno != EINVAL && errno != ENOSYS) return file_error("cannot be put in its place", path, errno);
    }
    if (::rename(partial.c_str(), target.c_str()) != 0) return file_error("cannot be put in its place", path, errno);
    return {};
  }

  // The name, too, reaches the disk, where its file system lets folders be synced.
  void sync_folder() const {
    const std::string folder = fs::path(target).parent_path().string();
    const int opened = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0) return;
    ::fsync(opened);
    ::close(opened);
  }
};

OutputFile::OutputFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

const std::string& OutputFile::path() const { return state_->path; }

Result<OutputFile> OutputFile::create(const std::string& path, Options options) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->overwrite = options.overwrite;
  struct stat found {};
  const bool there = ::stat(path.c_str(), &found) == 0;
  if (path.empty() || (there && S_ISDIR(found.st_mode))) {
    return Error{path.empty() ? "the name of a file to write is empty" : "is a folder", path, "name a file"};
  }
  Status opened;
  if (!there && errno != ENOENT) return file_error("cannot be written", path, errno);
  if (const auto descriptor = descriptor_named(path)) {
    std::fflush(stdout);
    opened = state->open_as_it_is(::fcntl(*descriptor, F_DUPFD_CLOEXEC, 3));
  } else if (there && !S_ISREG(found.st_mode)) {
    opened = state->open_as_it_is(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  } else if (there && !options.overwrite) {
    return exists_already(path);
  } else {
    opened = state->open_partial(there ? &found : nullptr);
  }
  if (!opened.ok()) return opened.error();
  return OutputFile(std::move(state));
}

Status OutputFile::write(std::string_view bytes) {
  CHECK(state_ != nullptr && state_->file >= 0, "write() after finish()");
  if (state_->buffer.size() + bytes.size() > kOutputBuffer) {
    if (Status status = state_->flush(); !status.ok()) return status;
  }
  if (bytes.size() > kOutputBuffer) return state_->put(bytes);
  state_->buffer.append(bytes);
  return {};
}

Status OutputFile::finish() {
  CHECK(state_ != nullptr && state_->file >= 0, "finish() twice");
  State& state = *state_;
  if (Status status = state.flush(); !status.ok()) return status;
  if (state.target.empty()) return state.close_file();
  if (Status status = state.sync_file(); !status.ok()) return status;
  if (Status status = state.close_file(); !status.ok()) return status;
  if (Status status = state.put_in_place(); !status.ok()) return status;
  state.kept.reset();
  state.partial.clear();
  state.sync_folder();
  return {};
}

Status write_whole_file(const std::string& path, std::string_view bytes) {
  auto file = OutputFile::create(path);
  if (!file) return file.error();
  if (Status status = file->write(bytes); !status.ok()) return status;
  return file->finish();
}

}  // namespace forerun
