#include "cli/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string_view>

#include "cli/command.h"

namespace forerun::cli {

void open_standard_streams() {
  constexpr int kModes[] = {O_RDONLY, O_RDONLY, O_WRONLY};  // writing to what is open for reading fails
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    const int opened = open("/dev/null", kModes[stream]);  // the lowest number that is free: this one
    if (opened > STDERR_FILENO) close(opened);
  }
}

int finish_standard_output(int code, const char* told) {
  errno = 0;
  std::fflush(stdout);  // std::cout has no buffer of its own
  const int fault = errno;
  if (std::ferror(stdout) == 0 && std::cout.good()) return code;
  const char* reason = told != nullptr ? told : fault != 0 ? std::strerror(fault) : "a part of it was lost";
  std::fprintf(stderr, "forerun: standard output cannot be written: %s; the answer is not whole\n", reason);
  // A code that a monitored command exited with is passed on.
  return code == kDone || code == kDoesNotFit ? static_cast<int>(kInputAtFault) : code;
}

TextStyle text_style(bool details) {
  const char* terminal = std::getenv("TERM");
  const bool shows = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr && terminal != nullptr &&
                     std::string_view(terminal) != "dumb";
  return {.details = details, .terminal = shows};
}

}  // namespace forerun::cli
