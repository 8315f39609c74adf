// EventStream: server-sent events from whoever has news to one connection that waits for them.
//
// The connection sleeps while there is nothing to send, and is woken by the next event. A reader that is too slow misses progress,
// never the end.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace forerun::serve {

class EventStream {
 public:
  // `data` is one line. The last event closes the stream.
  void send(std::string_view event, std::string_view data, bool last = false);
  // A comment, by which a connection that is gone is found out.
  void beat();
  void close();

  // For the connection: called while it may go to sleep and when it must be woken.
  void attach(std::function<void()> sleep, std::function<void()> wake);
  void detach();
  struct Piece {
    size_t bytes = 0;  // 0 and not ended: it sleeps
    bool ended = false;
  };
  Piece read(char* into, size_t most);
  [[nodiscard]] bool closed();

 private:
  void wake_up();  // with the lock held

  std::mutex busy_;
  std::string text_;
  bool closed_ = false, asleep_ = false;
  std::function<void()> sleep_, wake_;
};

}  // namespace forerun::serve
