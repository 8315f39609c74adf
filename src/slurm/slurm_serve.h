// Predictions for job_submit.lua from a process that is there already: what they draw on is read once.
//
// A connection to a UNIX socket carries one line, the description, and gets "ok" or "error" and then the text. Each is
// answered in a process of its own, with a bound on its time and memory: a description that cannot be predicted costs
// the others nothing.
#pragma once

#include <functional>
#include <string>

#include "base/work_control.h"

namespace forerun {

struct ServeOptions {
  std::string socket;           // its path
  int seconds = 2;              // that an answer may take
  size_t at_once = 8;           // answers
  std::function<void()> ready;  // called once connections are taken
};

using Answer = std::function<Result<std::string>(const std::string& description)>;

// Answers until it is stopped, which is its usual end, and then takes the socket away.
Status serve_descriptions(const ServeOptions& options, const Answer& answer, const WorkControl& control = {});

// Asks it; an Error where nothing listens there, or none comes in time.
Result<std::string> ask_server(const std::string& socket, const std::string& description, int seconds = 10);

}  // namespace forerun
