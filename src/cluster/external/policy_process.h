// PolicyProcess: a scheduling policy that runs in a process of its own, and what is said to it and answered, line by line.
//
// A policy that somebody brings may crash, exit, hang or print; in a process of its own it does none of that to ours. Lines
// are words parted by tabs, times whole nanoseconds (-1: never), jobs and types numbers:
//
//   cluster TYPE GPUS TYPE GPUS ...                          once
//   job NUMBER GPUS LEAST MOST PRIORITY SUBMIT DEADLINE MEMORY ID USER GROUP MODEL PREDICTED ...   it waits from now on
//   finished NUMBER
//   stopped NUMBER NOW                                       a failure took its GPUs: it waits again
//   schedule NOW FREE ...                                    and the policy answers, in any number of lines:
//
//   start NUMBER TYPE GPUS  |  preempt NUMBER  |  wake TIME  |  fault TEXT  |  done       the last one is `done` or `fault`
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace forerun::cluster {

class PolicyProcess {
 public:
  // Runs a Python file (def schedule(cluster)) with python3, or a shared library (forerun_policy.h).
  static Result<std::unique_ptr<PolicyProcess>> start_python(const std::string& file);
  static Result<std::unique_ptr<PolicyProcess>> start_library(const std::string& file);

  PolicyProcess(const PolicyProcess&) = delete;
  PolicyProcess& operator=(const PolicyProcess&) = delete;
  ~PolicyProcess();  // ends it

  // Says `message`, lines of the protocol of which the last is `schedule`, and gives the lines of the answer without the
  // last. An Error where the process has died or says a fault, where there is no answer within `patience`, and where
  // `wanted` says that nobody waits for it any more.
  Result<std::vector<std::string>> ask(std::string_view message, std::chrono::milliseconds patience,
                                       const std::function<bool()>& wanted);

 private:
  using Clock = std::chrono::steady_clock;
  struct Patience {
    Clock::time_point until;
    const std::function<bool()>& wanted;
  };

  PolicyProcess(pid_t child, int end) : child_(child), end_(end) {}
  static Result<std::unique_ptr<PolicyProcess>> start(const std::function<pid_t(int end)>& launch,
                                                      const std::string& what);
  Status wait_for(short event, const Patience& patience) const;
  Status send(std::string_view message, const Patience& patience);
  Result<std::string> next_line(const Patience& patience);
  Error death();  // why it is no more

  pid_t child_;
  int end_;               // of the socket between us
  std::string received_;  // and not yet taken as lines
  size_t taken_ = 0;      // of it
};

// What the process of a shared library does: answers at `end` until that is closed. Does not return.
[[noreturn]] void serve_library(const std::string& file, int end);

// The descriptor of the socket in the process of a policy.
inline constexpr int kPolicyEnd = 3;

}  // namespace forerun::cluster
