#include "serve/workers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "serve/worker.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace forerun::serve {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kLargestAnswer = size_t{64} << 20;
constexpr size_t kLongestLine = 300;
constexpr auto kKept = std::chrono::seconds(120);  // an idle process of uploads

// What short questions leave behind in a process (an allocator's scattered pieces, mostly) ends with it: after so many it is replaced,
// which takes as long as ten of them.
constexpr int kAnswersEach = 2000;

// Short questions make and forget many small things: glibc keeps more of them at hand than its 7 of a size (a tenth of the time).
constexpr const char* kManyAtHand = "GLIBC_TUNABLES=glibc.malloc.tcache_count=60000";

const Answered kEnds{503, "", {"the server ends", "", "start it again"}};
const Answered kCancelled{409, "", {"was cancelled", "", ""}};

}  // namespace

struct Workers::Process {
  WorkerLane lane = WorkerLane::plain;
  std::string key;
  pid_t pid = -1;
  int socket = -1;
  std::string to_send, received;
  std::optional<Queued> at;  // what it works on
  Clock::time_point deadline, idle_since = Clock::now();
  int answers = 0;
  bool over = false;
};

Workers::Workers(Options options) : options_(std::move(options)), wakes_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(wakes_ >= 0, "no eventfd");
  thread_ = std::thread([this] { run(); });
}

Workers::~Workers() {
  stop();
  close(wakes_);
}

void Workers::wake() const {
  const uint64_t one = 1;
  (void)!write(wakes_, &one, sizeof(one));
}

uint64_t Workers::ask(WorkerTask task) {
  const std::lock_guard lock(busy_);
  const auto in_lane =
      std::count_if(waiting_.begin(), waiting_.end(), [&](const Queued& one) { return one.task.lane == task.lane; });
  if (stopping_ || static_cast<size_t>(in_lane) >= options_.longest_queue) return 0;
  waiting_.push_back({++last_number_, std::move(task)});
  wake();
  return last_number_;
}

void Workers::cancel(uint64_t task) {
  const std::lock_guard lock(busy_);
  cancelled_.push_back(task);
  wake();
}

void Workers::stop() {
  {
    const std::lock_guard lock(busy_);
    stopping_ = true;
    wake();
  }
  if (thread_.joinable()) thread_.join();
}

Workers::Figures Workers::figures() {
  const std::lock_guard lock(busy_);
  Figures now = figures_;
  now.waiting = waiting_.size();
  return now;
}

size_t Workers::most(WorkerLane lane) const {
  switch (lane) {
    case WorkerLane::plain: return options_.plain;
    case WorkerLane::uploads: return options_.of_uploads;
    default: return options_.of_jobs;
  }
}

// A process of our own program, at the other end of a socket.
Workers::Process* Workers::start(WorkerLane lane, const std::string& key) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return nullptr;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<std::string> words = {"forerun", "serve-worker", "--memory", fmt::format("{}", options_.memory_bytes)};
  if (!options_.uploads.empty()) words.insert(words.end(), {"--uploads", options_.uploads});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  std::string at_hand = kManyAtHand;
  if (lane == WorkerLane::plain && getenv("GLIBC_TUNABLES") == nullptr) variables.push_back(at_hand.data());
  variables.push_back(nullptr);
  // Ctrl-C is the server's to hear: its workers end with it.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  auto process = std::make_unique<Process>();
  const int failed =
      posix_spawn(&process->pid, options_.program.c_str(), &actions, &attributes, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    return nullptr;
  }
  process->lane = lane;
  process->key = key;
  process->socket = ends[0];
  processes_.push_back(std::move(process));
  const std::lock_guard lock(busy_);
  ++figures_.started;
  return processes_.back().get();
}

void Workers::end(Process& process, Answered why) {
  if (process.over) return;
  process.over = true;
  kill(process.pid, SIGKILL);
  waitpid(process.pid, nullptr, 0);
  close(process.socket);
  const auto at = std::exchange(process.at, std::nullopt);
  if (at) at->task.done(std::move(why));
}

// One that is idle, of the task's kind and, where that is about uploads, has read them; a new one where there is room, or in the place of an idle one.
Workers::Process* Workers::process_for(const WorkerTask& task) {
  size_t of_lane = 0;
  Process* idle = nullptr;
  for (const auto& process : processes_) {
    if (process->over || process->lane != task.lane) continue;
    ++of_lane;
    // A file of uploads is in the memory of one process at a time: the next question waits for it.
    const bool has_read = task.lane == WorkerLane::uploads && process->key.find(task.key) != std::string::npos;
    if (process->at && !has_read) continue;
    if (process->at) return nullptr;
    if (has_read || task.lane == WorkerLane::plain) return process.get();
    if (idle == nullptr || process->idle_since < idle->idle_since) idle = process.get();
  }
  if (of_lane >= most(task.lane)) {
    if (idle == nullptr) return nullptr;
    end(*idle, kEnds);
  }
  return start(task.lane, task.key);
}

void Workers::hand_out() {
  std::list<Queued> queue;
  std::vector<uint64_t> cancelled;
  {
    const std::lock_guard lock(busy_);
    queue.swap(waiting_);
    cancelled.swap(cancelled_);
  }
  const auto is_cancelled = [&](uint64_t number) {
    return std::find(cancelled.begin(), cancelled.end(), number) != cancelled.end();
  };
  for (const auto& process : processes_) {
    if (process->at && is_cancelled(process->at->number)) end(*process, kCancelled);
  }
  std::list<Queued> still;
  for (Queued& one : queue) {
    if (is_cancelled(one.number)) {
      one.task.done(kCancelled);
      continue;
    }
    Process* process = process_for(one.task);
    const bool room = process != nullptr || std::none_of(processes_.begin(), processes_.end(), [&](const auto& p) {
                        return !p->over && p->lane == one.task.lane && p->at;
                      });
    if (process == nullptr && room) {
      one.task.done({500, "", {"no process can be started for it", "", "see the limits on processes"}});
    } else if (process == nullptr) {
      still.push_back(std::move(one));
    } else {
      // A question alone has all cores to itself.
      const bool others = queue.size() > 1 || std::any_of(processes_.begin(), processes_.end(),
                                                          [](const auto& p) { return p->at.has_value(); });
      process->to_send =
          fmt::format("{} {} {}\n{}", one.task.name, one.task.words.size(), others ? 1 : 0, one.task.words);
      process->deadline = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(one.task.seconds * 1e3));
      process->at = std::move(one);
      if (process->at->task.started) process->at->task.started();
      write_to(*process);
    }
  }
  const std::lock_guard lock(busy_);
  waiting_.splice(waiting_.begin(), still);
}

void Workers::write_to(Process& process) {
  while (!process.to_send.empty()) {
    const ssize_t some = send(process.socket, process.to_send.data(), process.to_send.size(), MSG_NOSIGNAL);
    if (some <= 0) return;  // later, or its end shows when it is read from
    process.to_send.erase(0, static_cast<size_t>(some));
  }
}

// One whole message of what was received; false where there is none yet.
bool Workers::take_frame(Process& process) {
  const size_t line = process.received.find('\n');
  if (line == std::string::npos) {
    if (process.received.size() > kLongestLine) end(process, {500, "", {"a worker's answer cannot be read", "", ""}});
    return false;
  }
  const std::string head = process.received.substr(0, line);
  if (head.starts_with("p ")) {
    WorkerProgress progress;
    const size_t second = head.find(' ', 2), third = head.find(' ', second + 1);
    if (third != std::string::npos) {
      std::from_chars(head.data() + 2, head.data() + second, progress.done);
      std::from_chars(head.data() + second + 1, head.data() + third, progress.total);
      progress.what = head.substr(third + 1);
    }
    process.received.erase(0, line + 1);
    if (process.at && process.at->task.progress) process.at->task.progress(progress);
    return true;
  }
  size_t size = 0;
  if (head.size() > 2) std::from_chars(head.data() + 2, head.data() + head.size(), size);
  if (size > kLargestAnswer) {
    end(process, {422,
                  "",
                  {fmt::format("the answer has {} bytes, more than {} are handed over", size, kLargestAnswer), "",
                   "ask for less, or use the command line"}});
    return false;
  }
  if (process.received.size() < line + 1 + size) {
    process.received.reserve(line + 1 + size);
    return false;
  }
  // Nothing comes behind an answer: the text is taken as it is, not copied.
  std::string bytes = std::exchange(process.received, {});
  bytes.resize(line + 1 + size);
  bytes.erase(0, line + 1);
  process.idle_since = Clock::now();
  const auto at = std::exchange(process.at, std::nullopt);
  if (at) at->task.done(head[0] == 'a' ? Answered{200, std::move(bytes)} : Answered{400, "", error_from_json(bytes)});
  ++process.answers;
  const bool replaced =
      process.lane == WorkerLane::plain && process.answers >= kAnswersEach && start(process.lane, "") != nullptr;
  if (replaced || process.lane == WorkerLane::jobs) end(process, kEnds);
  return !process.over;
}

void Workers::read_from(Process& process) {
  std::array<char, 65536> buffer{};
  while (!process.over) {
    const ssize_t some = recv(process.socket, buffer.data(), buffer.size(), 0);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) return;
    if (some == 0) {
      {
        const std::lock_guard lock(busy_);
        ++figures_.ended_badly;
      }
      const bool of_uploads = process.lane == WorkerLane::uploads;
      return end(process, {of_uploads ? 422 : 500,
                           "",
                           {"the process that worked on it ended", "",
                            of_uploads ? "the file takes more memory than one answer may, or brings its reader down"
                                       : "this should not happen: please report the question"}});
    }
    process.received.append(buffer.data(), static_cast<size_t>(some));
    while (take_frame(process)) {
    }
  }
}

void Workers::look_at_clocks() {
  const auto now = Clock::now();
  for (const auto& process : processes_) {
    if (process->over) continue;
    if (process->at && now > process->deadline) {
      end(*process, {422,
                     "",
                     {fmt::format("it takes longer than {} seconds", process->at->task.seconds), "",
                      "ask it as a job: POST /api/v1/jobs"}});
    } else if (!process->at && process->lane == WorkerLane::uploads && now > process->idle_since + kKept) {
      end(*process, kEnds);
    }
  }
  processes_.remove_if([](const auto& process) { return process->over; });
  const std::lock_guard lock(busy_);
  figures_.processes = processes_.size();
  figures_.working = static_cast<size_t>(
      std::count_if(processes_.begin(), processes_.end(), [](const auto& process) { return process->at.has_value(); }));
}

void Workers::run() {
  // Those of plain questions read their data while nobody asks yet.
  for (size_t i = 0; i < options_.plain; ++i) start(WorkerLane::plain, "");
  while (true) {
    {
      const std::lock_guard lock(busy_);
      if (stopping_) break;
    }
    hand_out();
    look_at_clocks();
    std::vector<pollfd> watched = {{wakes_, POLLIN, 0}};
    std::vector<Process*> of;
    for (const auto& process : processes_) {
      watched.push_back({process->socket, static_cast<short>(POLLIN | (process->to_send.empty() ? 0 : POLLOUT)), 0});
      of.push_back(process.get());
    }
    poll(watched.data(), watched.size(), 200);
    uint64_t drained = 0;
    (void)!read(wakes_, &drained, sizeof(drained));
    for (size_t i = 0; i < of.size(); ++i) {
      if ((watched[i + 1].revents & POLLOUT) != 0) write_to(*of[i]);
      if ((watched[i + 1].revents & (POLLIN | POLLHUP | POLLERR)) != 0) read_from(*of[i]);
    }
  }
  for (const auto& process : processes_) end(*process, kEnds);
  std::list<Queued> left;
  {
    const std::lock_guard lock(busy_);
    left.swap(waiting_);
  }
  for (Queued& one : left) one.task.done(kEnds);
}

}  // namespace forerun::serve
