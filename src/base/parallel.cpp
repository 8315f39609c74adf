#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

namespace forerun {
namespace {

class ParallelTasks {
 public:
  ParallelTasks(size_t count, const std::function<void(size_t)>& task) : count_(count), task_(task) {}

  // Runs tasks until none is left; the task that ran out of memory, where one did.
  std::optional<size_t> work() {
    for (size_t i = next_++; i < count_; i = next_++) {
      try {
        task_(i);
      } catch (const std::bad_alloc&) {
        return i;
      } catch (...) {
        fail(i);
      }
    }
    return std::nullopt;
  }

  void run_alone(const std::vector<std::optional<size_t>>& returned) {
    for (const auto& i : returned) {
      if (!i || *i > first_failed_) continue;
      try {
        task_(*i);
      } catch (...) {
        fail(*i);
      }
    }
    for (size_t i = next_++; i < count_; i = next_++) task_(i);
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void fail(size_t i) {
    next_ = count_;
    const std::scoped_lock lock(failing_);
    if (i > first_failed_) return;
    first_failed_ = i;
    failure_ = std::current_exception();
  }

  size_t count_;
  const std::function<void(size_t)>& task_;
  std::atomic<size_t> next_ = 0;
  std::mutex failing_;
  size_t first_failed_ = SIZE_MAX;
  std::exception_ptr failure_;
};

}  // namespace

void parallel_for(size_t count, size_t threads, const std::function<void(size_t)>& task, const ThreadMaker& make) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  threads = std::min(threads, count);
  ParallelTasks tasks(count, task);
  std::vector<std::optional<size_t>> returned(std::max<size_t>(threads, 1));  // by thread; each writes its own
  std::vector<std::thread> others;
  try {
    others.reserve(threads);
    while (others.size() + 1 < threads) {
      const std::function<void()> work = [&tasks, &mine = returned[others.size() + 1]] { mine = tasks.work(); };
      others.push_back(make ? make(work) : std::thread(work));
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): std::system_error, bad_alloc: fewer do it
  }
  returned[0] = tasks.work();
  for (std::thread& other : others) other.join();
  std::sort(returned.begin(), returned.end());
  tasks.run_alone(returned);
  tasks.rethrow();
}

Status parallel_for(size_t count, size_t threads, Work& work, const std::function<void(size_t)>& task) {
  parallel_for(count, threads, [&](size_t i) {
    if (!work.goes_on()) return;
    task(i);
    (void)work.advance();
  });
  return work.status();
}

}  // namespace forerun
