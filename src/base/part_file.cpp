#include "base/part_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/output_file.h"
#include "base/parallel.h"
#include "base/part_lines.h"

namespace forerun {
namespace {

int write_at(int file, std::string_view bytes, uint64_t at) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(count));
    at += static_cast<uint64_t>(count);
  }
  return 0;
}

// A file system that cannot sync (EINVAL) is as good as it gets.
int synced(int file) {
  if (::fsync(file) == 0 || (errno != EIO && errno != ENOSPC && errno != EDQUOT)) return 0;
  return errno;
}

// That a new file has a name must reach the disk too.
void sync_folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const int file = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  (void)::fsync(file);
  ::close(file);
}

Error other_content(const std::string& what, const std::string& path) {
  return {what, path, "give another file, or move this one away to begin anew"};
}

}  // namespace

PartFile::PartFile(std::string path, int file, const Shard& shard, size_t cases)
    : path_(std::move(path)), file_(file), shard_(shard), done_(shard.cases_of(cases)) {}

PartFile::PartFile(PartFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      shard_(other.shard_),
      done_(std::move(other.done_)),
      found_(other.found_),
      size_(other.size_) {}

PartFile::~PartFile() {
  if (file_ >= 0) ::close(file_);  // which lets go of the lock
}

Result<PartFile> PartFile::open(const std::string& path, const ShardedWork& work, const Shard& shard) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return file_error("cannot be opened for writing", path, errno);
  PartFile part(path, file, shard, work.cases);
  struct stat found {};
  if (::fstat(file, &found) != 0 || !S_ISREG(found.st_mode)) {
    return Error{"is no plain file", path,
                 "give a file that can be read again, so that the work can go on after a stop"};
  }
  if (::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Error{"is being written by another process", path, "wait until it ends; each shard has a file of its own"};
  }
  const std::string head = part_head_line({work, shard}) + "\n";
  const auto size = static_cast<uint64_t>(found.st_size);
  if (size < head.size()) {  // new, or stopped while its head was written
    std::string there(size, '\0');
    const ssize_t got = ::pread(file, there.data(), there.size(), 0);
    if (got == found.st_size && head.starts_with(there)) {
      if (Status status = part.begin(head); !status.ok()) return status.error();
      return part;
    }
  }
  const Result<PartHead> here = parse_part_head(head, path);  // as a file gives it back
  CHECK(here.ok(), "a head that is none");
  if (Status status = part.read(here->work); !status.ok()) return status.error();
  return part;
}

Status PartFile::begin(const std::string& head) {
  int code = write_at(file_, head, 0);
  if (code == 0) code = synced(file_);
  if (code != 0) return file_error("cannot be written", path_, code);
  sync_folder_of(path_);
  size_ = head.size();
  return {};
}

Status PartFile::read(const ShardedWork& work) {
  bool has_head = false;
  const auto take = [&](const PlacedLine& line) -> Status {
    if (!has_head) {
      const Result<PartHead> head = parse_part_head(line.text, path_);
      if (!head || !line.ended) return other_content("is there and holds something else", path_);
      if (const auto differs = difference(head->work, work)) {
        return other_content("is a part of another question: " + *differs, path_);
      }
      if (head->shard != shard_) {
        return other_content(fmt::format("is shard {}, not {}", head->shard.text(), shard_.text()), path_);
      }
      has_head = true;
    } else if (const auto one = parse_part_case(line.text); one && line.ended) {
      if (!shard_.has(one->number) || one->number >= work.cases) {
        return other_content(fmt::format("has case {}, which is not of shard {}", one->number, shard_.text()), path_);
      }
      const size_t place = one->number / shard_.count;
      found_ += done_[place] ? 0 : 1;
      done_[place] = true;
    }
    if (line.ended) size_ = line.at + line.text.size() + 1;
    return {};
  };
  if (Status status = each_line(file_, path_, take); !status.ok()) return status;
  if (::ftruncate(file_, static_cast<off_t>(size_)) != 0) return file_error("cannot be written", path_, errno);
  return {};
}

std::vector<size_t> PartFile::missing() const {
  std::vector<size_t> numbers;
  for (size_t place = 0; place < done_.size(); ++place) {
    if (!done_[place]) numbers.push_back(shard_.number(place));
  }
  return numbers;
}

Status PartFile::add(size_t number, std::string_view row) {
  CHECK(shard_.has(number) && number / shard_.count < done_.size(), "a case of another shard");
  const size_t place = number / shard_.count;
  CHECK(!done_[place], "a case is done once");
  if (Status status = append(part_case_line(number, row) + "\n"); !status.ok()) return status;
  done_[place] = true;
  return {};
}

Status PartFile::append(std::string_view line) {
  int code = write_at(file_, line, size_);
  if (code == 0) code = synced(file_);
  if (code != 0) {
    if (::ftruncate(file_, static_cast<off_t>(size_)) != 0) code = errno;
    return file_error("cannot be written", path_, code);
  }
  size_ += line.size();
  return {};
}

Status do_missing(PartFile& part, size_t threads, Work& work, const CaseAnswer& answer) {
  const std::vector<size_t> numbers = part.missing();
  std::mutex adding;
  std::optional<Error> failed;  // guarded by `adding`
  (void)work.advance(static_cast<int64_t>(part.found()));
  Status status = parallel_for(numbers.size(), threads, work, [&](size_t i) {
    {
      const std::lock_guard lock(adding);
      if (failed) return;
    }
    const Result<std::string> row = answer(numbers[i]);
    const std::lock_guard lock(adding);
    if (failed) return;
    if (!row) {
      failed = row.error();
    } else if (const Status added = part.add(numbers[i], *row); !added.ok()) {
      failed = added.error();
    }
  });
  if (failed) return *failed;
  return status;
}

}  // namespace forerun
