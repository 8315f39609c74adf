// Aside: one thread that does what may wait for a disk or a database server, so that connections do not: while a store is slow, pages
// and questions are answered as ever. What was asked first is done first.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace forerun::serve {

class Aside {
 public:
  struct Limits {
    size_t waiting = 1024, bytes = size_t{16} << 20;
  };
  Aside() : Aside(Limits()) {}
  explicit Aside(Limits limits);
  ~Aside() { stop(); }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  // False, and nothing will be done, where too much waits or it ends. `bytes`: what the work holds on to.
  bool add(size_t bytes, std::function<void()> work);
  // Does what waits, then ends.
  void stop();

 private:
  struct Waiting {
    size_t bytes;
    std::function<void()> work;
  };
  void run();

  Limits limits_;
  std::mutex busy_;  // guards what follows up to `stopping_`
  std::condition_variable woken_;
  std::deque<Waiting> waiting_;
  size_t bytes_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace forerun::serve
