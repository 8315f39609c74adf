#include "serve/aside.h"

#include <utility>

namespace forerun::serve {

Aside::Aside(Limits limits) : limits_(limits), thread_([this] { run(); }) {}

bool Aside::add(size_t bytes, std::function<void()> work) {
  const std::lock_guard lock(busy_);
  if (stopping_ || waiting_.size() >= limits_.waiting || bytes_ + bytes > limits_.bytes) return false;
  waiting_.push_back({bytes, std::move(work)});
  bytes_ += bytes;
  woken_.notify_one();
  return true;
}

void Aside::stop() {
  {
    const std::lock_guard lock(busy_);
    stopping_ = true;
    woken_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Aside::run() {
  std::unique_lock lock(busy_);
  while (true) {
    woken_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    next.work();
    lock.lock();
    bytes_ -= next.bytes;
  }
}

}  // namespace forerun::serve
