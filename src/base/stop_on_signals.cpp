#include "base/stop_on_signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/partial_files.h"

namespace forerun {
namespace {

// All that the handler knows. request_stop() takes locks, which a handler may not: it writes to a pipe, and a thread that
// reads the pipe makes the request.
std::atomic<int> pipe_to_stop = -1;
std::atomic<bool> stop_asked = false;
std::atomic<pid_t> stopping_process = 0;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

constexpr char kStopRequested = 's', kWatchEnds = 'e';

void on_stop_signal(int number) {
  const int before = errno;
  // A child that was forked off has no thread to stop it, and the pipe is its parent's.
  if (stop_asked.exchange(true) || getpid() != stopping_process) {
    if (getpid() == stopping_process) remove_partial_files();
    std::signal(number, SIG_DFL);
    raise(number);
  } else if (const int pipe = pipe_to_stop; pipe >= 0) {
    (void)!write(pipe, &kStopRequested, 1);
  }
  errno = before;
}

}  // namespace

struct StopOnSignals::State {
  std::stop_source source;
  std::array<int, 2> pipe{-1, -1};
  std::thread watcher;
  std::vector<std::pair<int, struct sigaction>> before;

  void watch() {
    char word = 0;
    while (true) {
      const ssize_t got = read(pipe[0], &word, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got != 1 || word == kWatchEnds) return;
      source.request_stop();
    }
  }
};

StopOnSignals::StopOnSignals(std::initializer_list<int> signals) : state_(std::make_unique<State>()) {
  CHECK(pipe_to_stop == -1, "only one StopOnSignals lives at a time");
  if (pipe2(state_->pipe.data(), O_CLOEXEC) != 0) return;
  try {
    state_->watcher = std::thread([state = state_.get()] { state->watch(); });
  } catch (const std::system_error&) {
    return;
  }
  stop_asked = false;
  stopping_process = getpid();
  pipe_to_stop = state_->pipe[1];
  for (const int number : signals) {
    struct sigaction was {};
    if (sigaction(number, nullptr, &was) != 0 || was.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = on_stop_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, &action, nullptr) == 0) state_->before.emplace_back(number, was);
  }
}

StopOnSignals::~StopOnSignals() {
  for (const auto& [number, action] : state_->before) sigaction(number, &action, nullptr);
  pipe_to_stop = -1;
  if (state_->watcher.joinable()) {
    (void)!write(state_->pipe[1], &kWatchEnds, 1);
    state_->watcher.join();
  }
  for (const int end : state_->pipe) {
    if (end >= 0) close(end);
  }
}

std::stop_token StopOnSignals::token() const { return state_->source.get_token(); }

}  // namespace forerun
