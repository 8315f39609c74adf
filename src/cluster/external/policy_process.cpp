#include "cluster/external/policy_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

extern char** environ;  // NOLINT: POSIX's name

namespace forerun::cluster {

extern const char* const kPythonDriver;  // python_driver.cpp

namespace {

constexpr int kSliceMilliseconds = 100;                 // between looks at whether an answer is still wanted
constexpr size_t kLongestAnswer = size_t{1} << 28;      // bytes: no policy that means well comes near it
constexpr std::chrono::milliseconds kLastMoments{200};  // that a process has for exiting once it has closed its end

// The first lines of the process of a shared library, between fork() and the library's own code.
void leave_parent(int end) {
  setpgid(0, 0);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);  // what it prints is no answer of ours
  if (end != kPolicyEnd) dup2(end, kPolicyEnd);
  close_range(kPolicyEnd + 1, ~0U, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_DFL);
}

// 0 and errno where it cannot be started.
pid_t spawn_python(const std::string& file, int end) {
  std::vector<std::string> words = {"python3", "-c", kPythonDriver, file};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, end, kPolicyEnd);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int fault = posix_spawnp(&child, "python3", &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  errno = fault;
  return fault == 0 ? child : 0;
}

}  // namespace

Result<std::unique_ptr<PolicyProcess>> PolicyProcess::start(const std::function<pid_t(int end)>& launch,
                                                            const std::string& what) {
  std::array<int, 2> ends{-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Error{fmt::format("no socket for the policy: {}", strerror(errno)), what, ""};
  }
  const pid_t child = launch(ends[1]);
  const int fault = errno;
  close(ends[1]);
  if (child <= 0) {
    close(ends[0]);
    return Error{fmt::format("the process of the policy cannot be started: {}", strerror(fault)), what,
                 "a policy in Python needs python3 on the PATH"};
  }
  return std::unique_ptr<PolicyProcess>(new PolicyProcess(child, ends[0]));
}

Result<std::unique_ptr<PolicyProcess>> PolicyProcess::start_python(const std::string& file) {
  return start([&](int end) { return spawn_python(file, end); }, file);
}

Result<std::unique_ptr<PolicyProcess>> PolicyProcess::start_library(const std::string& file) {
  const auto launch = [&](int end) {
    const pid_t child = fork();
    if (child != 0) return child;
    leave_parent(end);
    serve_library(file, kPolicyEnd);
  };
  return start(launch, file);
}

PolicyProcess::~PolicyProcess() {
  close(end_);
  if (child_ == 0) return;
  kill(-child_, SIGKILL);
  kill(child_, SIGKILL);  // where it has not got its group yet
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Error PolicyProcess::death() {
  int status = 0;
  const auto until = Clock::now() + kLastMoments;
  pid_t ended = 0;
  while ((ended = waitpid(child_, &status, WNOHANG)) == 0 && Clock::now() < until) usleep(1000);
  if (ended != child_) return {"the policy closed its connection without an answer", "", ""};
  child_ = 0;
  if (WIFSIGNALED(status)) {
    return {fmt::format("the policy crashed: signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status))), "",
            "what it printed stands above"};
  }
  return {fmt::format("the policy ended by itself, with exit code {}", WEXITSTATUS(status)), "",
          "it is to return from schedule and never to exit"};
}

Status PolicyProcess::wait_for(short event, const Patience& patience) const {
  while (true) {
    if (!patience.wanted()) return Error{"nobody waits for the policy any more", "", "", ErrorKind::stopped};
    if (Clock::now() >= patience.until) {
      return Error{"the policy gave no answer in time", "", "write FILE:timeout=SECONDS if it needs longer"};
    }
    pollfd end{end_, event, 0};
    const int ready = poll(&end, 1, kSliceMilliseconds);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR)
      return Error{fmt::format("the policy cannot be heard: {}", strerror(errno)), "", ""};
  }
}

Status PolicyProcess::send(std::string_view message, const Patience& patience) {
  while (!message.empty()) {
    if (Status status = wait_for(POLLOUT, patience); !status) return status;
    const ssize_t sent = ::send(end_, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) message.remove_prefix(static_cast<size_t>(sent));
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return {};  // what it said before it died is read first
    if (sent < 0 && errno != EINTR && errno != EAGAIN) {
      return Error{fmt::format("the policy cannot be spoken to: {}", strerror(errno)), "", ""};
    }
  }
  return {};
}

Result<std::string> PolicyProcess::next_line(const Patience& patience) {
  std::array<char, 1 << 16> buffer{};
  size_t searched = taken_;
  while (true) {
    const size_t stop = received_.find('\n', searched);
    if (stop != std::string::npos) {
      std::string line = received_.substr(taken_, stop - taken_);
      taken_ = stop + 1;
      return line;
    }
    received_.erase(0, taken_);
    taken_ = 0;
    searched = received_.size();
    if (received_.size() > kLongestAnswer) return Error{"the policy answered without end", "", ""};
    if (Status status = wait_for(POLLIN, patience); !status) return status.error();
    const ssize_t got = recv(end_, buffer.data(), buffer.size(), 0);
    if (got > 0) received_.append(buffer.data(), static_cast<size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) return death();
  }
}

Result<std::vector<std::string>> PolicyProcess::ask(std::string_view message, std::chrono::milliseconds patience,
                                                    const std::function<bool()>& wanted) {
  const Patience until{Clock::now() + patience, wanted};
  if (Status status = send(message, until); !status) return status.error();
  std::vector<std::string> lines;
  size_t bytes = 0;
  while (true) {
    auto line = next_line(until);
    if (!line) return line.error();
    if (*line == "done") return lines;
    constexpr std::string_view kFault = "fault\t";
    if (line->starts_with(kFault)) return Error{line->substr(kFault.size()), "", ""};
    bytes += line->size() + sizeof(std::string);
    if (bytes > kLongestAnswer) return Error{"the policy answered without end", "", ""};
    lines.push_back(*std::move(line));
  }
}

}  // namespace forerun::cluster
