// What tasks of forerun-lab say while they run and in the end: answers on standard output, all else on standard error.
#pragma once

#include <fmt/format.h>

#include <string>

#include "cli/command.h"
#include "records/data_scan.h"

namespace forerun::cli {

// Prints an answer as text or as one line of JSON, or the Error in its place.
template <class Answer>
int print_answer(const Result<Answer>& answer, bool json) {
  if (!answer) return fail(answer.error());
  fmt::print("{}", json ? to_json(*answer) + "\n" : to_text(*answer));
  return kDone;
}

inline void tell(const std::string& what) { fmt::print(stderr, "{}\n", what); }
inline void tell_error(const Error& error) { fmt::print(stderr, "forerun: {}\n", error.message()); }
inline void tell_problem(const DataProblem& problem) { tell_error(problem.error()); }

}  // namespace forerun::cli
