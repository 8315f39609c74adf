#include "monitor/child_group.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "monitor/clock.h"

namespace forerun::monitor {
namespace {

int exit_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

// In the child: a group of its own, and signals as any program finds them.
[[noreturn]] void become(char* const* arguments, int told) {
  setpgid(0, 0);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGXFSZ}) {
    struct sigaction action {};
    const bool ignored = sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
    if (!ignored || number == SIGXFSZ) std::signal(number, SIG_DFL);  // nohup's wish is passed on
  }
  execvp(arguments[0], arguments);
  const int code = errno;
  [[maybe_unused]] const ssize_t written = write(told, &code, sizeof(code));
  _exit(127);
}

// Makes a group the terminal's foreground one. From the background that takes a signal not to be stopped by.
void set_foreground(int terminal, pid_t group) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTTOU);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  tcsetpgrp(terminal, group);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

// A pipe that closes with exec tells whether the command could be run: the child writes errno where not.
Result<ChildGroup> ChildGroup::start(const std::vector<std::string>& command) {
  int outcome[2];
  if (pipe2(outcome, O_CLOEXEC) != 0) return Error{std::string("no pipe: ") + std::strerror(errno), "", ""};
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) become(arguments.data(), outcome[1]);
  int code = child < 0 ? errno : 0;
  close(outcome[1]);
  if (child > 0) {
    setpgid(child, child);  // here too: whoever comes first
    ssize_t count = 0;
    do count = read(outcome[0], &code, sizeof(code));
    while (count < 0 && errno == EINTR);
    if (count == sizeof(code)) waitpid(child, nullptr, 0);
  }
  close(outcome[0]);
  if (code != 0)
    return Error{std::string("cannot be run: ") + std::strerror(code), command[0], "give a program after --"};
  return ChildGroup(child);
}

ChildGroup::ChildGroup(pid_t group) : group_(group) {}
ChildGroup::ChildGroup(ChildGroup&& other) noexcept
    : group_(other.group_), terminal_(std::exchange(other.terminal_, -1)), exit_code_(other.exit_code_) {}
ChildGroup::~ChildGroup() { take_terminal(); }

std::optional<int> ChildGroup::poll() {
  int status = 0;
  while (!exit_code_ && waitpid(group_, &status, WNOHANG | WUNTRACED) == group_) {
    if (WIFSTOPPED(status)) {
      stopped(WSTOPSIG(status));
    } else {
      exit_code_ = exit_code_of(status);
      take_terminal();
    }
  }
  return exit_code_;
}

void ChildGroup::stopped(int signal) {
  if (signal == SIGTTIN || signal == SIGTTOU) {
    give_terminal();
    if (terminal_ >= 0) kill(-group_, SIGCONT);
  } else if (signal == SIGTSTP && terminal_ >= 0) {
    pause();
  }
}

void ChildGroup::pause() {
  const bool had_terminal = terminal_ >= 0;
  take_terminal();
  kill(-group_, SIGTSTP);
  raise(SIGSTOP);
  if (had_terminal) give_terminal();
  kill(-group_, SIGCONT);
}

// Only where it is the caller's to give.
void ChildGroup::give_terminal() {
  if (terminal_ < 0) terminal_ = open("/dev/tty", O_RDWR | O_CLOEXEC);
  if (terminal_ < 0) return;
  if (tcgetpgrp(terminal_) == getpgrp()) {
    set_foreground(terminal_, group_);
  } else {
    close(std::exchange(terminal_, -1));
  }
}

void ChildGroup::take_terminal() {
  if (terminal_ < 0) return;
  if (tcgetpgrp(terminal_) == group_) set_foreground(terminal_, getpgrp());
  close(std::exchange(terminal_, -1));
}

bool ChildGroup::gone() const { return exit_code_ && kill(-group_, 0) != 0 && errno == ESRCH; }

// Those whose parents have ended are this process's children while it ends them (end()).
void ChildGroup::reap() {
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-group_, &status, WNOHANG)) > 0;) {
    if (ended == group_) exit_code_ = exit_code_of(status);
  }
}

void ChildGroup::wait_until_gone(double seconds, const std::atomic<int>* hurry) {
  const int64_t until = monotonic_ns() + static_cast<int64_t>(seconds * 1e9);
  for (reap(); !gone() && monotonic_ns() < until; reap()) {
    if (hurry != nullptr && *hurry == SIGKILL) return;
    const timespec a_while{0, 2'000'000};
    nanosleep(&a_while, nullptr);
  }
}

int ChildGroup::end(int signal, double grace_seconds, const std::atomic<int>* hurry) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  kill(-group_, signal);
  kill(-group_, SIGCONT);  // who is stopped hears it too
  wait_until_gone(grace_seconds, hurry);
  if (!gone()) {
    kill(-group_, SIGKILL);
    wait_until_gone(grace_seconds, nullptr);
  }
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  take_terminal();
  return exit_code_.value_or(128 + SIGKILL);  // a process that the kernel does not let go of
}

}  // namespace forerun::monitor
