#include "serve/event_stream.h"

#include <algorithm>
#include <cstring>

namespace forerun::serve {
namespace {

constexpr size_t kMostWaiting = 65536;

}  // namespace

void EventStream::wake_up() {
  if (!asleep_) return;
  asleep_ = false;
  if (wake_) wake_();
}

void EventStream::send(std::string_view event, std::string_view data, bool last) {
  const std::lock_guard lock(busy_);
  if (closed_) return;
  if (last || text_.size() < kMostWaiting) {
    text_.append("event: ").append(event).append("\ndata: ").append(data).append("\n\n");
  }
  closed_ = closed_ || last;
  wake_up();
}

void EventStream::beat() {
  const std::lock_guard lock(busy_);
  if (closed_ || !text_.empty()) return;
  text_ += ":\n\n";
  wake_up();
}

void EventStream::close() {
  const std::lock_guard lock(busy_);
  closed_ = true;
  wake_up();
}

void EventStream::attach(std::function<void()> sleep, std::function<void()> wake) {
  const std::lock_guard lock(busy_);
  sleep_ = std::move(sleep);
  wake_ = std::move(wake);
}

void EventStream::detach() {
  const std::lock_guard lock(busy_);
  sleep_ = nullptr;
  wake_ = nullptr;
  asleep_ = false;
  closed_ = true;
}

EventStream::Piece EventStream::read(char* into, size_t most) {
  const std::lock_guard lock(busy_);
  if (text_.empty()) {
    if (closed_) return {0, true};
    asleep_ = true;
    if (sleep_) sleep_();
    return {};
  }
  const size_t some = std::min(most, text_.size());
  memcpy(into, text_.data(), some);
  text_.erase(0, some);
  return {some, false};
}

bool EventStream::closed() {
  const std::lock_guard lock(busy_);
  return closed_;
}

}  // namespace forerun::serve
