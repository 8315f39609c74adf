// What a command printed and exited with: for tests that use the program as a user does.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace forerun::cli {

struct Outcome {
  int code = -1;    // -1: it could not be started
  std::string out;  // standard output; standard error too, where the command says 2>&1
};

inline Outcome outcome_of(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  while (const size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) outcome.out.append(buffer.data(), count);
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

// The program with arguments; standard output and standard error together.
inline Outcome forerun_outcome(const std::string& arguments) {
  return outcome_of(std::string(FORERUN_PROGRAM) + " " + arguments + " 2>&1");
}

// The call ends with that exit code, and says the word.
inline void expect_refused(const std::string& call, int code, const std::string& word) {
  const Outcome outcome = forerun_outcome(call);
  EXPECT_EQ(outcome.code, code) << call << "\n" << outcome.out;
  EXPECT_NE(outcome.out.find(word), std::string::npos) << call << "\n" << outcome.out;
}

}  // namespace forerun::cli
