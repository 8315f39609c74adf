#include "base/part_set.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/output_file.h"
#include "base/part_lines.h"

namespace forerun {
namespace {

constexpr size_t kNamed = 5;       // of what is missing
constexpr size_t kKeptOpen = 256;  // parts: a process may often have no more than 1024 files open

std::string list_text(const std::vector<std::string>& named, size_t count) {
  return fmt::format("{}{}", fmt::join(named, ", "), count > named.size() ? ", ..." : "");
}

}  // namespace

PartSet::PartSet(PartSet&& other) noexcept
    : work_(std::move(other.work_)), parts_(std::exchange(other.parts_, {})), not_whole_(other.not_whole_) {}

PartSet::~PartSet() {
  for (const Part& part : parts_) {
    if (part.file >= 0) ::close(part.file);
  }
}

Result<PartSet> PartSet::open(const std::vector<std::string>& paths, const std::string& verb) {
  PartSet set;
  for (const std::string& path : paths) {
    if (Status status = set.add(path, verb); !status.ok()) return status.error();
  }
  std::sort(set.parts_.begin(), set.parts_.end(),
            [](const Part& a, const Part& b) { return a.shard.index < b.shard.index; });
  for (size_t i = 1; i < set.parts_.size(); ++i) {
    const Part& part = set.parts_[i];
    if (part.shard.index != set.parts_[i - 1].shard.index) continue;
    return Error{fmt::format("shard {} is given twice, also as {}", part.shard.text(), set.parts_[i - 1].path),
                 part.path, "give each part once"};
  }
  if (Status status = set.check_complete(); !status.ok()) return status.error();
  return set;
}

Status PartSet::add(const std::string& path, const std::string& verb) {
  Part& part = parts_.emplace_back();
  part.path = path;
  part.file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (part.file < 0) return file_error("cannot be opened", path, errno);
  bool has_head = false;
  const auto take = [&](const PlacedLine& line) -> Status {
    if (!has_head) {
      const Result<PartHead> head = parse_part_head(line.text, path);
      if (!head) return head.error();
      if (head->work.verb != verb) {
        return Error{fmt::format("is a part of `forerun {}`", head->work.verb), path,
                     fmt::format("merge it with `forerun {} merge`", head->work.verb)};
      }
      if (parts_.size() == 1) work_ = head->work;
      std::optional<std::string> differs = difference(head->work, work_);
      if (!differs && parts_.size() > 1 && head->shard.count != parts_.front().shard.count) {
        differs = fmt::format("it is shard {}, and that is {}", head->shard.text(), parts_.front().shard.text());
      }
      if (differs) {
        return Error{fmt::format("is of another question than {}: {}", parts_.front().path, *differs), path,
                     "give the parts of one question"};
      }
      part.shard = head->shard;
      has_head = true;
      return {};
    }
    const auto one = parse_part_case(line.text);
    if (!one || !line.ended) {
      ++not_whole_;
      return {};
    }
    if (!part.shard.has(one->number) || one->number >= work_.cases) {
      return Error{fmt::format("has case {}, which is not of shard {}", one->number, part.shard.text()), path,
                   "make the part anew"};
    }
    const auto within = static_cast<uint64_t>(one->row.data() - line.text.data());
    part.found.push_back({one->number, line.at + within, one->row.size()});
    return {};
  };
  if (Status status = each_line(part.file, path, take); !status.ok()) return status;
  if (!has_head) return Error{"is empty", path, "give a file that --shard I/N --out FILE wrote"};
  Status status = take_once(part);
  if (parts_.size() > kKeptOpen) ::close(std::exchange(part.file, -1));
  return status;
}

// A case that stands twice counts once where both are the same.
Status PartSet::take_once(Part& part) const {
  std::vector<Found>& found = part.found;
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.number < b.number; });
  size_t kept = 0;
  for (const Found& one : found) {
    if (kept > 0 && found[kept - 1].number == one.number) {
      const auto first = read(part, found[kept - 1]);
      const auto second = read(part, one);
      if (!first) return first.error();
      if (!second) return second.error();
      if (*first == *second) continue;
      return Error{fmt::format("has case {} twice with different answers", one.number), part.path,
                   "make the part anew"};
    }
    found[kept++] = one;
  }
  found.resize(kept);
  return {};
}

Status PartSet::check_complete() const {
  if (parts_.empty()) return Error{"no part is named", "", "give the files that --shard I/N --out FILE wrote"};
  const size_t count = parts_.front().shard.count;
  if (parts_.size() < count) {
    std::vector<std::string> missing;
    size_t next = 0;
    for (size_t index = 0; index < count && missing.size() < kNamed; ++index) {
      if (next < parts_.size() && parts_[next].shard.index == index) {
        ++next;
      } else {
        missing.push_back(Shard{index, count}.text());
      }
    }
    return Error{fmt::format("{} of {} shards are missing: {}", count - parts_.size(), count,
                             list_text(missing, count - parts_.size())),
                 "", "give their parts too"};
  }
  for (const Part& part : parts_) {
    const size_t wanted = part.shard.cases_of(work_.cases);
    if (part.found.size() == wanted) continue;
    std::vector<std::string> missing;
    for (size_t place = 0, next = 0; place < wanted && missing.size() < kNamed; ++place) {
      if (next < part.found.size() && part.found[next].number == part.shard.number(place)) {
        ++next;
      } else {
        missing.push_back(std::to_string(part.shard.number(place)));
      }
    }
    return Error{fmt::format("shard {} lacks {} of its {} cases: {}", part.shard.text(), wanted - part.found.size(),
                             wanted, list_text(missing, wanted - part.found.size())),
                 part.path, "run that shard again: it goes on where it stopped"};
  }
  return {};
}

Result<std::string> PartSet::read(const Part& part, const Found& found) {
  if (part.file < 0) {
    Part opened{part.path, ::open(part.path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (opened.file < 0) return file_error("cannot be opened", part.path, errno);
    Result<std::string> row = read(opened, found);
    ::close(opened.file);
    return row;
  }
  std::string row(found.length, '\0');
  for (size_t done = 0; done < row.size();) {
    const ssize_t got = ::pread(part.file, row.data() + done, row.size() - done, static_cast<off_t>(found.at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return file_error("cannot be read to its end", part.path, got < 0 ? errno : EIO);
    done += static_cast<size_t>(got);
  }
  return row;
}

Result<std::string> PartSet::row(size_t number) const {
  CHECK(number < work_.cases, "a case beyond the last");
  const Part& part = parts_[number % parts_.size()];
  return read(part, part.found[number / parts_.size()]);
}

}  // namespace forerun
