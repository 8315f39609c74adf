#include "base/work_control.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace forerun {
namespace {

constexpr std::chrono::milliseconds kBetweenTold{100};
constexpr std::chrono::milliseconds kBetweenWeighed{20};  // reading /proc takes some microseconds
constexpr double kLongestBudget = 1e9;                    // seconds: beyond what the clock's units hold safely

}  // namespace

Budget Budget::of(double seconds, Bytes memory) {
  Budget budget{.deadline = std::nullopt, .seconds = seconds, .memory = memory};
  if (!(seconds > 0)) return budget;
  const std::chrono::duration<double> length(std::min(seconds, kLongestBudget));
  budget.deadline =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(length);
  return budget;
}

void Work::begin(std::string what, int64_t total) {
  {
    const std::scoped_lock lock(telling_);
    what_ = std::move(what);
    total_ = total;
    done_ = 0;
  }
  tell(true);
}

Status Work::check() {
  if (ended_.load(std::memory_order_acquire)) return status();
  if (control_.stop.stop_requested()) return end({"stopped" + so_far(), "", "", ErrorKind::stopped});
  const Budget& budget = control_.budget;
  if (!budget.deadline && budget.memory.value <= 0) return {};
  const Clock::time_point now = Clock::now();
  if (budget.deadline && now >= *budget.deadline) {
    return end({fmt::format("the time limit of {:g} s was reached{}", budget.seconds, so_far()), "",
                "ask for less, or give more time (--time-limit)", ErrorKind::time_limit});
  }
  if (budget.memory.value <= 0) return {};
  int64_t due = next_weighed_.load(std::memory_order_relaxed);
  const int64_t at = now.time_since_epoch().count();
  if (at < due || !next_weighed_.compare_exchange_strong(due, at + Clock::duration(kBetweenWeighed).count())) return {};
  if (const Bytes held = resident_memory(); held > budget.memory) {
    return end({fmt::format("the memory limit of {:.3g} GiB was reached with {:.3g} GiB{}", gibibytes(budget.memory),
                            gibibytes(held), so_far()),
                "", "ask for less, or give more memory (--memory-limit)", ErrorKind::memory_limit});
  }
  return {};
}

Status Work::advance(int64_t by) {
  done_ += by;
  if (control_.progress) tell(total_ > 0 && done_ == total_);
  return check();
}

Status Work::status() const {
  if (!ended_.load(std::memory_order_acquire)) return {};
  const std::scoped_lock lock(ending_);
  return *error_;
}

Status Work::end(Error error) {
  const std::scoped_lock lock(ending_);
  if (!error_) error_ = std::move(error);
  ended_.store(true, std::memory_order_release);
  return *error_;
}

// A thread that finds another one telling leaves it at that, except where all is done: that is always told.
void Work::tell(bool always) {
  if (!control_.progress) return;
  const int64_t now = Clock::now().time_since_epoch().count();
  if (!always && now < next_told_.load(std::memory_order_relaxed)) return;
  std::unique_lock lock(telling_, std::defer_lock);
  if (always) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return;
  }
  next_told_ = now + Clock::duration(kBetweenTold).count();
  control_.progress({what_, done_, total_});
}

std::string Work::so_far() const {
  const std::scoped_lock lock(telling_);
  if (what_.empty()) return "";
  return total_ > 0 ? fmt::format(" after {} of {} {}", done_.load(), total_, what_)
                    : fmt::format(" after {} {}", done_.load(), what_);
}

// Linux counts pages in /proc/self/statm: all of the program, then what is resident.
Bytes resident_memory() {
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return Bytes(0);
  long long all = 0, resident = 0;
  const int read = std::fscanf(file, "%lld %lld", &all, &resident);
  std::fclose(file);
  return Bytes(read == 2 ? resident * sysconf(_SC_PAGESIZE) : 0);
}

}  // namespace forerun
