// WorkControl: how whoever asks a long question hears of its progress, stops it, and bounds what it may take.
//
// Every long question takes one, and a default one asks for nothing. The question makes a `Work` of it and calls check() or
// advance() many times a second; where these return an Error it gives up and returns that Error, whose kind says why
// (ErrorKind::stopped, time_limit, memory_limit). There is no half answer: what a question had found is dropped, and files
// that were being written are left as they were. Rows that went to a handler before were whole.
//
//   std::stop_source stop;
//   const auto answer = fit(request, device, models, {.progress = show, .stop = stop.get_token(),
//                                                     .budget = Budget::of(10, Bytes(int64_t{1} << 30))});
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/quantity.h"
#include "base/result.h"

namespace forerun {

// How far a question is. Long ones have several stages, one behind the other, each with counts of its own.
struct Progress {
  std::string_view what;  // what is counted: "configurations"; valid during the call
  int64_t done = 0;
  int64_t total = 0;  // 0: not known
};

// What a question may take. The clock runs from where the budget is made, so that it can be handed on to the parts of a
// question. Memory is the resident memory of the whole process: a question cannot tell its own from that of others.
struct Budget {
  std::optional<std::chrono::steady_clock::time_point> deadline;
  double seconds = 0;  // that there were up to the deadline, for messages
  Bytes memory;        // 0: no limit

  // `seconds` from now on; 0: no limit.
  static Budget of(double seconds, Bytes memory = Bytes(0));
};

struct WorkControl {
  // Called from the threads that work, one call at a time: when a stage begins, at most ten times a second while it lasts,
  // and when all of it is done. It should return soon, and must not ask the same Work.
  std::function<void(const Progress&)> progress;
  std::stop_token stop;
  Budget budget;
};

// A question at work under a control. Threads may share one; the control must outlive it.
class Work {
 public:
  explicit Work(const WorkControl& control) : control_(control) {}
  Work(const WorkControl& control, std::string what, int64_t total = 0) : control_(control) {
    begin(std::move(what), total);
  }

  // Begins a stage; only while no other thread works on the one before.
  void begin(std::string what, int64_t total = 0);

  // Whether to go on. Once it is an Error it stays that Error. Costs less than a microsecond.
  Status check();
  // The same as yes or no, for loops that cannot return an Error; status() has it afterwards.
  bool goes_on() { return !ended_.load(std::memory_order_relaxed) && check().ok(); }
  // So many more are done; then as check().
  Status advance(int64_t by = 1);
  // What check() said last.
  [[nodiscard]] Status status() const;

 private:
  using Clock = std::chrono::steady_clock;

  void tell(bool always);
  Status end(Error error);
  [[nodiscard]] std::string so_far() const;

  const WorkControl& control_;
  std::string what_;
  int64_t total_ = 0;
  std::atomic<int64_t> done_ = 0;
  std::atomic<int64_t> next_told_ = 0;     // on the clock, in its units
  std::atomic<int64_t> next_weighed_ = 0;  // when memory is looked at again
  std::atomic<bool> ended_ = false;
  mutable std::mutex telling_;
  mutable std::mutex ending_;
  std::optional<Error> error_;  // guarded by ending_
};

// What this process holds in memory now; 0 where the system does not tell.
Bytes resident_memory();

}  // namespace forerun
