#include "monitor/net_counters.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <thread>
#include <utility>

namespace forerun::monitor {
namespace {

constexpr int kSentColumn = 8;

// The next number of a row, after blanks; 0 and false at its end.
bool next_number(std::string_view& row, uint64_t& number) {
  const size_t digits = row.find_first_not_of(' ');
  if (digits == std::string_view::npos) return false;
  row.remove_prefix(digits);
  const auto [end, problem] = std::from_chars(row.data(), row.data() + row.size(), number);
  if (problem != std::errc()) return false;
  row.remove_prefix(static_cast<size_t>(end - row.data()));
  return true;
}

bool parse_row(std::string_view line, InterfaceBytes& row) {
  const size_t colon = line.find(':');
  const size_t begin = line.find_first_not_of(' ');
  if (colon == std::string_view::npos || begin >= colon) return false;
  row.name = std::string(line.substr(begin, colon - begin));
  line.remove_prefix(colon + 1);
  for (int column = 0; column <= kSentColumn; ++column) {
    uint64_t number = 0;
    if (!next_number(line, number)) return false;
    if (column == 0) row.received = number;
    if (column == kSentColumn) row.sent = number;
  }
  return true;
}

}  // namespace

std::vector<InterfaceBytes> parse_net_dev(std::string_view text) {
  std::vector<InterfaceBytes> rows;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    InterfaceBytes row;
    if (parse_row(text.substr(0, end), row)) rows.push_back(std::move(row));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return rows;
}

InterfaceBytes total_of(const std::vector<InterfaceBytes>& interfaces, const std::string& name) {
  InterfaceBytes total{name, 0, 0};
  for (const InterfaceBytes& row : interfaces) {
    if (name.empty() ? row.name == "lo" : row.name != name) continue;
    total.received += row.received;
    total.sent += row.sent;
  }
  return total;
}

Result<NetCounters> NetCounters::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Error{std::string("cannot be opened: ") + std::strerror(errno), path, ""};
  return NetCounters(file);
}

Result<NetCounters> NetCounters::of_self() { return open("/proc/thread-self/net/dev"); }

Result<NetCounters> NetCounters::of_process(int pid) { return open("/proc/" + std::to_string(pid) + "/net/dev"); }

Result<NetCounters> NetCounters::of_namespace(const std::string& name) {
  const std::string path = name.find('/') == std::string::npos ? "/run/netns/" + name : name;
  const int space = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0) {
    return Error{std::string("no such network namespace: ") + std::strerror(errno), path, "see `ip netns list`"};
  }
  Result<NetCounters> counters = Error{};
  std::thread([&] {  // only this thread changes its namespace
    if (setns(space, CLONE_NEWNET) != 0) {
      counters = Error{std::string("cannot enter the network namespace: ") + std::strerror(errno), path, "run as root"};
    } else {
      counters = of_self();
    }
  })
      .join();
  ::close(space);
  return counters;
}

NetCounters::NetCounters(NetCounters&& other) noexcept
    : file_(std::exchange(other.file_, -1)), buffer_(std::move(other.buffer_)) {}

NetCounters& NetCounters::operator=(NetCounters&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

NetCounters::~NetCounters() {
  if (file_ >= 0) ::close(file_);
}

std::vector<InterfaceBytes> NetCounters::read() {
  if (buffer_.empty()) buffer_.resize(4096);
  size_t filled = 0;
  while (true) {
    const ssize_t got = ::pread(file_, buffer_.data() + filled, buffer_.size() - filled, static_cast<off_t>(filled));
    if (got <= 0) break;
    filled += static_cast<size_t>(got);
    if (filled < buffer_.size() / 2) break;  // the table ends well before the buffer
    if (filled == buffer_.size()) buffer_.resize(2 * buffer_.size());
  }
  return parse_net_dev(std::string_view(buffer_).substr(0, filled));
}

}  // namespace forerun::monitor
