#include "slurm/slurm_serve.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace forerun {
namespace {

constexpr size_t kLongestDescription = 4096;
constexpr size_t kLongestAnswer = 65536;
// Sanitizers map terabytes of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr rlim_t kAnswerBytes = RLIM_INFINITY;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr rlim_t kAnswerBytes = RLIM_INFINITY;
#else
constexpr rlim_t kAnswerBytes = rlim_t{4} << 30;
#endif
#else
constexpr rlim_t kAnswerBytes = rlim_t{4} << 30;
#endif

class LocalSocket {
 public:
  LocalSocket() : descriptor_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  explicit LocalSocket(int descriptor) : descriptor_(descriptor) {}
  LocalSocket(LocalSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  LocalSocket(const LocalSocket&) = delete;
  LocalSocket& operator=(const LocalSocket&) = delete;
  LocalSocket& operator=(LocalSocket&&) = delete;
  ~LocalSocket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] int descriptor() const { return descriptor_; }

  void give_up_after(int seconds) const {
    const timeval time{.tv_sec = seconds, .tv_usec = 0};
    setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
    setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
  }

  [[nodiscard]] bool send_all(const std::string& text) const {
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t some = send(descriptor_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (some < 0 && errno == EINTR) continue;
      if (some <= 0) return false;
      sent += static_cast<size_t>(some);
    }
    return true;
  }

  // Up to `end` or the end of what comes; false where it is cut off or too long.
  [[nodiscard]] bool receive(std::string& text, char end, size_t longest) const {
    std::array<char, 4096> buffer{};
    while (text.size() <= longest) {
      const ssize_t some = recv(descriptor_, buffer.data(), buffer.size(), 0);
      if (some < 0 && errno == EINTR) continue;
      if (some < 0) return false;
      if (some == 0) return true;
      text.append(buffer.data(), static_cast<size_t>(some));
      if (end != '\0' && text.find(end) != std::string::npos) return true;
    }
    return false;
  }

 private:
  int descriptor_;
};

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return Error{"a socket's path has 1 to 107 characters", path,
                 "use a shorter one, such as /run/forerun-serve/ask.socket"};
  }
  memcpy(static_cast<char*>(address.sun_path), path.c_str(), path.size() + 1);
  return address;
}

bool connect_to(const LocalSocket& socket, const sockaddr_un& address) {
  return connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;  // NOLINT
}

// Takes the place of a socket that nothing listens at; anything else there is left alone.
Status bind_to(const LocalSocket& listening, const std::string& path, const sockaddr_un& address) {
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode)) return Error{"is there already and no socket", path, "give another path"};
    if (connect_to(LocalSocket(), address)) return Error{"another process listens there", path, "stop it first"};
    unlink(path.c_str());
  }
  if (bind(listening.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||  // NOLINT
      listen(listening.descriptor(), 128) != 0) {
    return Error{std::string("cannot listen: ") + strerror(errno), path, "the folder must be there and be writable"};
  }
  return {};
}

// In a process of its own, which is ended where it takes too long.
[[noreturn]] void answer_one(const LocalSocket& connection, const ServeOptions& options, const Answer& answer) {
  alarm(static_cast<unsigned>(options.seconds));
  const rlimit memory{kAnswerBytes, kAnswerBytes};
  setrlimit(RLIMIT_AS, &memory);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  connection.give_up_after(options.seconds);
  std::string description;
  if (!connection.receive(description, '\n', kLongestDescription)) _exit(1);
  description.resize(std::min(description.find('\n'), description.size()));
  std::string text;
  try {
    const Result<std::string> found = answer(description);
    text = found ? "ok\n" + *found : "error\n" + found.error().message();
  } catch (const std::exception& fault) {
    text = std::string("error\n") + fault.what();
  }
  _exit(connection.send_all(text) ? 0 : 1);
}

}  // namespace

Status serve_descriptions(const ServeOptions& options, const Answer& answer, const WorkControl& control) {
  const Result<sockaddr_un> address = address_of(options.socket);
  if (!address) return address.error();
  const LocalSocket listening;
  if (const Status bound = bind_to(listening, options.socket, *address); !bound) return bound.error();
  if (options.ready) options.ready();
  std::vector<pid_t> at_work;
  Work work(control);
  while (work.goes_on()) {
    std::erase_if(at_work, [](pid_t child) { return waitpid(child, nullptr, WNOHANG) != 0; });
    pollfd waiting{listening.descriptor(), POLLIN, 0};
    if (at_work.size() >= options.at_once) {
      poll(nullptr, 0, 5);
      continue;
    }
    if (poll(&waiting, 1, 200) <= 0) continue;
    const LocalSocket connection(accept4(listening.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.descriptor() < 0) continue;
    const pid_t child = fork();
    if (child == 0) answer_one(connection, options, answer);
    if (child > 0) at_work.push_back(child);
  }
  unlink(options.socket.c_str());
  return {};
}

Result<std::string> ask_server(const std::string& socket, const std::string& description, int seconds) {
  const Result<sockaddr_un> address = address_of(socket);
  if (!address) return address.error();
  if (description.find('\n') != std::string::npos) return Error{"the description has more than one line", "", ""};
  const LocalSocket connection;
  connection.give_up_after(seconds);
  if (!connect_to(connection, *address)) {
    return Error{std::string("nothing answers there: ") + strerror(errno), socket, "start `forerun slurm serve`"};
  }
  std::string text;
  if (!connection.send_all(description + "\n") || !connection.receive(text, '\0', kLongestAnswer)) {
    return Error{"no answer in time", socket, ""};
  }
  const size_t first = text.find('\n');
  if (first == std::string::npos) return Error{"the answer was broken off; it took too long", socket, ""};
  const std::string rest = text.substr(first + 1);
  if (text.substr(0, first) != "ok") return Error{rest, "", ""};
  return rest;
}

}  // namespace forerun
