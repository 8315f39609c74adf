// StopOnSignals: while it lives, Ctrl-C asks long work to stop (base/work_control.h) in place of ending the program.
//
// For programs, not for libraries: handlers of signals belong to the whole process, so that only one of these lives at a
// time. The first signal asks for the stop; a second one ends the program at once, without unfinished files. Signals that
// are ignored (nohup) stay ignored. Where the system gives no thread, signals do what they did before.
#pragma once

#include <csignal>
#include <initializer_list>
#include <memory>
#include <stop_token>

namespace forerun {

class StopOnSignals {
 public:
  explicit StopOnSignals(std::initializer_list<int> signals = {SIGINT});
  ~StopOnSignals();
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;

  [[nodiscard]] std::stop_token token() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace forerun
