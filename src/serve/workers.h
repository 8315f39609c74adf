// Workers: the processes that answer (serve/worker.h), and the queue in front of them.
//
// Three lanes, each with so many processes at most: plain questions, answered by processes that stay for some thousands of them; questions of uploads, each
// set of uploads in a process of its own, which stays a while since the next question is often of the same; and jobs, a process
// each. A question that takes too long, or is cancelled, is ended by ending its process. One thread moves all of it; what a
// task is told, it is told from there.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"

namespace forerun::serve {

struct Answered {
  int status = 200;  // of HTTP: 400 the question is at fault, 422 limits, 500 ours, 503 the server ends
  std::string text;
  Error error = {};
};

struct WorkerProgress {
  std::string what;
  int64_t done = 0, total = 0;
};

enum class WorkerLane : unsigned char { plain, uploads, jobs };
constexpr size_t kWorkerLanes = 3;

struct WorkerTask {
  WorkerLane lane = WorkerLane::plain;
  std::string name, words;
  std::string key = {};  // what a process is kept for: the uploads
  double seconds = 30;
  std::function<void()> started = {};
  std::function<void(const WorkerProgress&)> progress = {};
  std::function<void(Answered)> done;
};

class Workers {
 public:
  struct Options {
    std::string program;  // this one
    std::string uploads;
    int64_t memory_bytes = 0;  // of one process
    size_t plain = 2, of_uploads = 2, of_jobs = 2;
    size_t longest_queue = 64;  // of each lane
  };
  explicit Workers(Options options);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Its number, or 0 where the queue is full.
  uint64_t ask(WorkerTask task);
  // Ends it wherever it is; it is told that it was.
  void cancel(uint64_t task);
  // Ends all processes; what waits is told so.
  void stop();

  struct Figures {
    size_t waiting = 0, working = 0, processes = 0;
    int64_t started = 0, ended_badly = 0;
  };
  Figures figures();

 private:
  struct Process;
  struct Queued {
    uint64_t number = 0;
    WorkerTask task;
  };
  using Processes = std::list<std::unique_ptr<Process>>;

  void run();
  void wake() const;
  void hand_out();
  Process* process_for(const WorkerTask& task);
  Process* start(WorkerLane lane, const std::string& key);
  void end(Process& process, Answered why);
  void read_from(Process& process);
  bool take_frame(Process& process);
  static void write_to(Process& process);
  void look_at_clocks();
  [[nodiscard]] size_t most(WorkerLane lane) const;

  Options options_;
  int wakes_ = -1;
  std::mutex busy_;  // guards what follows up to `stopping_`
  std::list<Queued> waiting_;
  std::vector<uint64_t> cancelled_;
  uint64_t last_number_ = 0;
  Figures figures_;
  bool stopping_ = false;
  Processes processes_;  // of the thread alone
  std::thread thread_;
};

}  // namespace forerun::serve
