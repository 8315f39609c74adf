// CommandWork: the control (base/work_control.h) under which a verb asks a long question.
//
// Ctrl-C stops the question, which returns an Error that fail() turns into exit code 130; --time-limit and --memory-limit
// bound it; progress is one line on standard error, or a line every 15 seconds where that is no terminal. All of it ends with the object, so that a verb
// makes it for the question alone:
//
//   const auto answer = fit(request, device, models, CommandWork(options.limits).control());
#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <memory>

#include "base/quantity.h"
#include "base/stop_on_signals.h"
#include "base/work_control.h"

namespace forerun::cli {

struct WorkLimits {
  double seconds = 0;  // 0: no limit
  Bytes memory;        // 0: no limit
};

// --time-limit and --memory-limit.
void add_work_limits(CLI::App& verb, WorkLimits& limits);

class CommandWork {
 public:
  // Where rows of the answer are printed as they come to the terminal, the line of progress would stand among them.
  enum class Answer : unsigned char { when_whole, as_it_comes };

  explicit CommandWork(const WorkLimits& limits = {}, Answer answer = Answer::when_whole,
                       std::initializer_list<int> signals = {SIGINT});
  ~CommandWork();
  CommandWork(const CommandWork&) = delete;
  CommandWork& operator=(const CommandWork&) = delete;

  [[nodiscard]] const WorkControl& control() const { return control_; }

 private:
  class ProgressLine;

  StopOnSignals stop_;
  std::shared_ptr<ProgressLine> line_;
  WorkControl control_;
};

}  // namespace forerun::cli
