// OrderedWork: pieces that come one after the other, worked on beside each other, and handed on in the order they came.
//
// Each thread has a slot for the piece in its hands. It takes the next piece (one thread at a time), works on it beside
// the others, waits until all pieces before it were handed on, and hands its own on (one thread at a time). So at most as
// many pieces are held as there are slots, and whatever takes and hands on sees what one thread would see. Threads that
// cannot be made are done without. Where anything throws nothing more is handed on, every thread ends with the piece in
// its hands, and then the exception is thrown here.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

#include "base/parallel.h"

namespace forerun {

class OrderedWork {
 public:
  struct Steps {
    std::function<bool(size_t slot)> take;     // the next piece into the slot; false where there is none
    std::function<void(size_t slot)> work;     // on the piece in the slot, beside other slots
    std::function<void(size_t slot)> hand_on;  // the piece in the slot
  };
  explicit OrderedWork(Steps steps) : steps_(std::move(steps)) {}

  // At most `slots` threads, the calling one among them. Once for each OrderedWork.
  void run(size_t slots, const ThreadMaker& make = {});

  // Within `take`: waits until every piece taken before was handed on. Nothing else runs then until `take` returns. False where
  // something has thrown: there is nothing more to take.
  bool settle();

 private:
  void serve(size_t slot);
  [[nodiscard]] bool hand_on_in_turn(size_t slot, uint64_t number);
  void give_up(std::exception_ptr failure);

  Steps steps_;
  std::mutex taking_;
  bool drained_ = false;  // guarded by taking_, as is taken_
  uint64_t taken_ = 0;
  std::mutex handing_;
  std::condition_variable turn_;
  uint64_t handed_ = 0;         // guarded by handing_, as is failure_
  std::exception_ptr failure_;  // of what threw first
};

}  // namespace forerun
