// How fast the program itself answers: started, asked, and ended, with its data folder read; the median of several runs.
#pragma once

#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

extern char** environ;

namespace forerun::bench {

struct ProgramCase {
  std::string name;  // of the row
  std::vector<std::string> arguments;
  double bar_ms = 0;  // that it is to stay below
};

// Runs `forerun`, which lies beside this program. False where it does not answer.
inline bool time_program(const ProgramCase& asked) {
  constexpr int kRuns = 31;
  const std::string program = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "forerun").string();
  std::vector<std::string> words = {program};
  words.insert(words.end(), asked.arguments.begin(), asked.arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", 1, 0);
  const auto cpu_ms = [] {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-3;
  };
  std::vector<double> times;
  bool good = true;
  const double before = cpu_ms();
  for (int i = 0; i < kRuns && good; ++i) {
    const auto start = std::chrono::steady_clock::now();
    pid_t child = 0;
    int status = 0;
    good = posix_spawn(&child, program.c_str(), &quiet, nullptr, pointers.data(), environ) == 0 &&
           waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3);
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() * 1e3);
  }
  posix_spawn_file_actions_destroy(&quiet);
  if (!good) {
    fmt::print("{}: {} does not answer; build it first\n", asked.name, program);
    return false;
  }
  std::sort(times.begin(), times.end());
  fmt::print("{:<34}{:>10.2f} ms median {:>9.2f} ms best {:>9.1f} ms CPU, bar {:.0f} ms\n", asked.name,
             times[times.size() / 2], times.front(), (cpu_ms() - before) / kRuns, asked.bar_ms);
  return true;
}

}  // namespace forerun::bench
