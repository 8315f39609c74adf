// Slurm's own commands, run without a shell, and its jobs as `squeue --json` prints them.
//
// JSON is the one form in which text that users write (names, comments, paths) cannot pass for another field. Both
// forms of it are read: plain numbers (Slurm 20.11 to 22.05) and {"set": true, "infinite": false, "number": 60} (23.02
// on).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace forerun {

// Runs a program with arguments and gives what it printed; an Error where it fails. Replaced in tests.
using CommandRunner = std::function<Result<std::string>(const std::vector<std::string>& command)>;

// Each word reaches the program as it is. It is ended after `kCommandSeconds`, and is out of reach of a ^C at the
// terminal, so that what was begun is finished.
Result<std::string> run_command(const std::vector<std::string>& command);
inline constexpr int kCommandSeconds = 60;

// Whether a command failed since the controller did not answer, which may pass.
bool unreachable(const Error& error);

// Times are seconds since 1970; 0: not yet.
struct SlurmJob {
  int64_t id = 0;
  std::string label;  // as users know it: "11", "11_1" for a task of an array, "11+1" for a part of a heterogeneous job
  std::string name;   // what the user wrote, without control characters
  std::string comment;
  int64_t user = -1;
  std::string state;
  int64_t submit = 0, start = 0, end = 0;
  int64_t limit_min = 0;                  // 0: none
  std::optional<int64_t> hard_limit_min;  // as job_submit.lua notes it; 0: unlimited; missing: the limit is not soft
  [[nodiscard]] bool over() const;
  [[nodiscard]] bool soft() const;  // the limit is below the hard one
};

// What `squeue --json` printed.
Result<std::vector<SlurmJob>> parse_jobs(const std::string& text);
Result<std::vector<SlurmJob>> show_jobs(const CommandRunner& run);

// "forerun: predicted 5.0 s, 12 MiB of GPU memory, hard limit 60 min" -> 60; "... unlimited" -> 0. An admin comment that
// does not start like this has none. Only operators and job_submit.lua can write it.
std::optional<int64_t> hard_limit_of(const std::string& admin_comment);

}  // namespace forerun
