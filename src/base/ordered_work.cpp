#include "base/ordered_work.h"

#include <utility>

namespace forerun {

bool OrderedWork::settle() {
  std::unique_lock lock(handing_);
  turn_.wait(lock, [&] { return handed_ == taken_ || failure_; });
  return !failure_;
}

bool OrderedWork::hand_on_in_turn(size_t slot, uint64_t number) {
  {
    std::unique_lock lock(handing_);
    turn_.wait(lock, [&] { return handed_ == number || failure_; });
    if (failure_) return false;
  }
  steps_.hand_on(slot);  // nobody else's turn until handed_ is the next
  const std::scoped_lock lock(handing_);
  ++handed_;
  turn_.notify_all();
  return true;
}

void OrderedWork::give_up(std::exception_ptr failure) {
  const std::scoped_lock lock(handing_);
  if (!failure_) failure_ = std::move(failure);
  turn_.notify_all();
}

void OrderedWork::serve(size_t slot) {
  try {
    while (true) {
      uint64_t number = 0;
      {
        const std::scoped_lock lock(taking_);
        drained_ = drained_ || !steps_.take(slot);
        if (drained_) return;
        number = taken_++;
      }
      steps_.work(slot);
      if (!hand_on_in_turn(slot, number)) return;
    }
  } catch (...) {
    give_up(std::current_exception());
  }
}

void OrderedWork::run(size_t slots, const ThreadMaker& make) {
  parallel_for(
      slots, slots, [this](size_t slot) { serve(slot); }, make);
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace forerun
