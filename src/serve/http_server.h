// HttpServer: libmicrohttpd's connections -> Requests for a Service, its Replies -> responses.
//
// Limits are the library's where it has them: memory of a connection (headers), idle time, number of connections. Bodies of questions
// are held in memory, at most kLargestBody each and kAllBodies together; uploads go on to disk. A connection whose answer
// comes later sleeps meanwhile and holds no thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "serve/service.h"

namespace forerun::serve {

struct HttpOptions {
  std::string address = "127.0.0.1";  // or "::1", "0.0.0.0"
  uint16_t port = 0;                  // 0: a free one
  unsigned connections = 12000;       // bounded by what the system lets a process open, too
  unsigned idle_seconds = 15;
};

class HttpServer {
 public:
  static constexpr size_t kLargestBody = size_t{1} << 20;
  static constexpr int64_t kAllBodies = int64_t{64} << 20;
  static constexpr size_t kConnectionMemory = 32768;  // headers are among it

  // Bound, so that the port is known, but not yet answering.
  static Result<std::unique_ptr<HttpServer>> bind(const HttpOptions& options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] uint16_t port() const;
  Status start(Service& service);
  // No new connections; those that are there end. Whoever still owes a reply must have given it.
  void stop();

 private:
  friend struct HttpCallbacks;
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace forerun::serve
