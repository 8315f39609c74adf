// How fast the server answers and a store lists: `forerun serve` as users start it, asked over connections that stay open, and
// 10^5 results kept.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "store/random_hex.h"
#include "store/store.h"

extern char** environ;

namespace forerun::bench {

// The program's server in a folder of its own.
class ServedProgram {
 public:
  ServedProgram() : folder_(std::filesystem::temp_directory_path() / ("forerun-bench-" + store::random_hex(6))) {
    std::filesystem::create_directories(folder_);
    const std::string program = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "forerun").string();
    std::vector<std::string> words = {program, "serve", "--store", (folder_ / "runs.db").string()};
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0);
    if (posix_spawn(&child_, program.c_str(), &actions, nullptr, pointers.data(), environ) != 0) child_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    std::string line;
    for (char c = 0; child_ > 0 && read(ends[0], &c, 1) == 1 && c != '\n';) line += c;
    close(ends[0]);
    const size_t colon = line.rfind(':'), token = line.find("token=");
    if (token == std::string::npos) return;
    port_ = static_cast<uint16_t>(std::atoi(line.c_str() + colon + 1));
    token_ = line.substr(token + 6);
  }
  ~ServedProgram() {
    if (child_ > 0) {
      kill(child_, SIGTERM);
      waitpid(child_, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }
  ServedProgram(const ServedProgram&) = delete;
  ServedProgram& operator=(const ServedProgram&) = delete;

  [[nodiscard]] bool there() const { return port_ != 0; }
  [[nodiscard]] uint16_t port() const { return port_; }
  [[nodiscard]] const std::string& token() const { return token_; }

 private:
  std::filesystem::path folder_;
  pid_t child_ = -1;
  uint16_t port_ = 0;
  std::string token_;
};

// One connection that stays open.
class KeptConnection {
 public:
  explicit KeptConnection(const ServedProgram& server) : server_(server), socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.port());
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    const int yes = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    good_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~KeptConnection() { close(socket_); }
  KeptConnection(const KeptConnection&) = delete;
  KeptConnection& operator=(const KeptConnection&) = delete;

  // Whether the question is answered with 200 and the word.
  bool ask(const std::string& question, const std::string& body, const std::string& word) {
    const std::string sent = fmt::format(
        "POST /api/v1/{} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n"
        "Content-Length: {}\r\n\r\n{}",
        question, server_.token(), body.size(), body);
    if (!good_ || send(socket_, sent.data(), sent.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(sent.size()))
      return false;
    std::string back;
    std::array<char, 65536> buffer{};
    for (size_t wanted = 0; wanted == 0 || back.size() < wanted;) {
      const ssize_t some = recv(socket_, buffer.data(), buffer.size(), 0);
      if (some <= 0) return good_ = false;
      back.append(buffer.data(), static_cast<size_t>(some));
      const size_t end = back.find("\r\n\r\n"), length = back.find("Content-Length: ");
      if (wanted == 0 && end != std::string::npos && length != std::string::npos) {
        wanted = end + 4 + static_cast<size_t>(std::atoll(back.c_str() + length + 16));
      }
    }
    return back.starts_with("HTTP/1.1 200") && back.find(word) != std::string::npos;
  }

 private:
  const ServedProgram& server_;
  int socket_;
  bool good_ = false;
};

// `connections` ask one question after the other, of `batches` batches from `first` on: where these are as many as the requests,
// no answer is one from before.
struct RequestCase {
  const char* what;
  size_t connections = 1, requests = 1000, first = 64, batches = 1000;
};
inline bool time_requests(const ServedProgram& server, const RequestCase& asked) {
  const size_t connections = asked.connections, requests = asked.requests;
  std::vector<std::vector<double>> times(connections);
  std::atomic<bool> good = true;
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < connections; ++i) {
    threads.emplace_back([&, i] {
      KeptConnection connection(server);
      for (size_t k = 0; k < requests / connections && good; ++k) {
        const auto began = std::chrono::steady_clock::now();
        const std::string body = fmt::format(R"({{"model":"resnet50","batch":{}}})",
                                             asked.first + (i * (requests / connections) + k) % asked.batches);
        if (!connection.ask("predict", body, "\"iter_ms\":")) good = false;
        times[i].push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() * 1e3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::vector<double> all;
  for (const auto& some : times) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  if (!good || all.empty()) {
    fmt::print("serve: a question was not answered\n");
    return false;
  }
  fmt::print("{:<34}{:>10.1f} requests/s, p50 {:.1f} ms, p99 {:.1f} ms\n",
             fmt::format("predict, {}, {} at once", asked.what, connections), static_cast<double>(all.size()) / seconds,
             all[all.size() / 2], all[all.size() * 99 / 100]);
  return true;
}

// 10^5 results: a page of 50 from the front, from the middle, of one model; and all of them in pages of 1,000.
inline bool time_list(const std::string& name, const char* kind) {
  constexpr int kResults = 100'000;
  auto opened = store::Store::open(name, {.create = true});
  if (!opened) {
    fmt::print("{}\n", opened.error().message());
    return false;
  }
  store::Store& store = **opened;
  const std::string answer(2000, 'x');
  const auto counts = store.counts();
  for (int i = 0; counts && i < kResults && counts->results < kResults; i += 1000) {
    std::vector<store::NewResult> some;
    for (int k = 0; k < 1000; ++k) {
      some.push_back({.kind = k % 3 == 0 ? "fit" : "predict", .question = "{}", .answer = answer});
      some.back().figures = {.model = fmt::format("model{}", (i + k) % 97), .gpu = "NVIDIA H200", .iter_ms = 1.0 * k};
    }
    if (!store.keep_all(some)) return false;
  }
  const auto timed = [&](const char* what, const store::ResultFilter& filter, bool all) {
    std::vector<double> times;
    size_t rows = 0;
    for (int run = 0; run < (all ? 1 : 21); ++run) {
      const auto start = std::chrono::steady_clock::now();
      store::ResultFilter at = filter;
      for (rows = 0;;) {
        const auto page = store.list(at);
        if (!page) return false;
        rows += page->rows.size();
        if (!all || page->next.empty()) break;
        at.after = page->next;
      }
      times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() * 1e3);
    }
    std::sort(times.begin(), times.end());
    fmt::print("{:<34}{:>10.2f} ms median, {} rows\n", fmt::format("{}: {}", kind, what), times[times.size() / 2],
               rows);
    return rows == (all ? size_t{kResults} : size_t{50});
  };
  std::string middle;
  for (int i = 0; i < kResults / 2; i += 1000) middle = store.list({.after = middle, .limit = 1000})->next;
  return timed("first 50 of 10^5 results", {}, false) && timed("50 from their middle", {.after = middle}, false) &&
         timed("50 of one model", {.model = "model7"}, false) && timed("all, 1,000 at a time", {.limit = 1000}, true);
}

inline bool time_serve() {
  bool good = true;
  {
    const auto start = std::chrono::steady_clock::now();
    const ServedProgram server;
    if (!server.there()) {
      fmt::print("serve: not measured; build forerun first\n");
      return false;
    }
    fmt::print("{:<34}{:>10.1f} ms\n", "forerun serve, start to link",
               std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() * 1e3);
    good = KeptConnection(server).ask("predict", R"({"model":"resnet50"})", "\"iter_ms\":");
    fmt::print("{:<34}{:>10.1f} ms\n", "start to first answer",
               std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() * 1e3);
    size_t first = 64;
    for (const size_t connections : {1, 4, 8}) {
      good = good && time_requests(server, {"all new", connections, 800, first, 800});
      first += 800;
    }
    good = good && time_requests(server, {"host-bound", 4, 60, 1, 60});  // with three further predictions each
    for (const size_t connections : {1, 16})
      good = good && time_requests(server, {"16 known", connections, 8000, 64, 16});
  }
  const std::string file =
      (std::filesystem::temp_directory_path() / ("forerun-bench-" + store::random_hex(6))).string();
  good = time_list(file, "SQLite") && good;
  for (const char* part : {"", "-wal", "-shm"}) std::filesystem::remove(file + part);
  if (const char* postgres = std::getenv("FORERUN_BENCH_STORE")) return time_list(postgres, "PostgreSQL") && good;
  fmt::print("PostgreSQL: not measured; FORERUN_BENCH_STORE=postgresql://... names an empty database\n");
  return good;
}

}  // namespace forerun::bench
