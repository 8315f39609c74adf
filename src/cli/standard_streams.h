// Standard output is an answer: where it cannot be written, the program says so and does not exit with 0.
#pragma once

#include "report/text_style.h"

namespace forerun::cli {

// Where a standard stream is closed, opens one in its place, so that no file of ours gets its number: writing to standard
// output then fails, what is said on standard error is lost.
void open_standard_streams();

// Writes out standard output. The exit code: as given, or 1 with a word on standard error where the answer was lost.
// `told` is the reason, where it is known already.
int finish_standard_output(int code, const char* told = nullptr);

// How an answer is written to standard output: with colours and bars where that is a terminal and NO_COLOR is not set.
TextStyle text_style(bool details);

}  // namespace forerun::cli
