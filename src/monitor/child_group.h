// A command in a process group of its own, so that it can be ended with everything it started.
//
// A terminal stays with the caller until the command asks for it (it is stopped for reading it from the background): then
// the command's group becomes the foreground one, until the group is paused or ends.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace forerun::monitor {

class ChildGroup {
 public:
  // Found on the path. An Error where it cannot be run.
  static Result<ChildGroup> start(const std::vector<std::string>& command);

  ChildGroup(ChildGroup&& other) noexcept;
  ChildGroup& operator=(ChildGroup&&) = delete;
  ~ChildGroup();  // does not end it

  // The command's exit code once it has ended, 128 and the signal's number where one ended it; never waits.
  std::optional<int> poll();
  // Sends the signal to the group and waits until all of it has ended. What is left after the grace, or as soon as
  // `hurry` is SIGKILL, is killed. The command's exit code.
  int end(int signal, double grace_seconds, const std::atomic<int>* hurry);
  // Stops the group and the caller, as Ctrl-Z does; goes on when the caller is continued.
  void pause();

 private:
  explicit ChildGroup(pid_t group);
  void reap();
  void stopped(int signal);
  void give_terminal();
  void take_terminal();
  void wait_until_gone(double seconds, const std::atomic<int>* hurry);
  [[nodiscard]] bool gone() const;

  pid_t group_ = 0;
  int terminal_ = -1;  // the command has it
  std::optional<int> exit_code_;
};

}  // namespace forerun::monitor
