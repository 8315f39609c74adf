#include "slurm/slurm_commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX wants it declared by who uses it

namespace forerun {
namespace {

constexpr int64_t kNoLimit = 0xfffffffe;  // Slurm's NO_VAL; INFINITE is one more

using CommandClock = std::chrono::steady_clock;

// Both ends are closed in programs that are started, but for the copies made for them.
struct OutputPipe {
  int read_end = -1, write_end = -1;
  OutputPipe() {
    std::array<int, 2> ends{-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
    read_end = ends[0];
    write_end = ends[1];
  }
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;
  ~OutputPipe() {
    close_end(read_end);
    close_end(write_end);
  }
  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
};

// Starts the command in a process group of its own; 0 and errno where it cannot.
pid_t start_command(const std::vector<std::string>& command, const OutputPipe& out, const OutputPipe& err) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));  // NOLINT: POSIX's type
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write_end, STDERR_FILENO);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int fault = posix_spawnp(&child, words[0], &actions, &attributes, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  errno = fault;
  return fault == 0 ? child : 0;
}

// Reads both pipes to their ends; false where the time is over before.
bool read_both(OutputPipe& out, std::string& output, OutputPipe& err, std::string& errors) {
  const auto deadline = CommandClock::now() + std::chrono::seconds(kCommandSeconds);
  std::array<char, 4096> buffer{};
  while (out.read_end >= 0 || err.read_end >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - CommandClock::now()).count();
    if (left <= 0) return false;
    std::array<pollfd, 2> ends{pollfd{out.read_end, POLLIN, 0}, pollfd{err.read_end, POLLIN, 0}};
    if (poll(ends.data(), ends.size(), static_cast<int>(left)) <= 0) continue;
    const auto drain = [&](const pollfd& end, int& descriptor, std::string& text) {
      if (end.revents == 0) return;
      const ssize_t got = read(descriptor, buffer.data(), buffer.size());
      if (got > 0) text.append(buffer.data(), static_cast<size_t>(got));
      if (got == 0 || (got < 0 && errno != EINTR)) OutputPipe::close_end(descriptor);
    };
    drain(ends[0], out.read_end, output);
    drain(ends[1], err.read_end, errors);
  }
  return true;
}

int wait_for_end(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

bool slurm_flag(const nlohmann::json& value, const char* key) {
  const auto found = value.find(key);
  return found != value.end() && found->is_boolean() && found->get<bool>();
}

// A number in either form; missing where it is not set, `infinite` where it is that.
std::optional<int64_t> slurm_number(const nlohmann::json& job, const char* key, int64_t infinite = 0) {
  const auto found = job.find(key);
  if (found == job.end()) return {};
  if (found->is_number_integer()) return found->get<int64_t>();
  if (!found->is_object()) return {};
  if (slurm_flag(*found, "infinite")) return infinite;
  const auto number = found->find("number");
  if (!slurm_flag(*found, "set") || number == found->end() || !number->is_number_integer()) return {};
  return number->get<int64_t>();
}

// A string; control characters become question marks.
std::string slurm_text(const nlohmann::json& job, const char* key) {
  const auto found = job.find(key);
  if (found == job.end() || !found->is_string()) return "";
  auto text = found->get<std::string>();
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return text;
}

// "RUNNING", or ["COMPLETED", "COMPLETING"].
std::string slurm_state(const nlohmann::json& job) {
  const auto found = job.find("job_state");
  if (found == job.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array() || found->empty() || !found->front().is_string()) return "";
  if (std::find(found->begin(), found->end(), "COMPLETING") != found->end()) return "COMPLETING";
  return found->front().get<std::string>();
}

std::string slurm_label(const nlohmann::json& job, int64_t id) {
  const int64_t array = slurm_number(job, "array_job_id").value_or(0);
  if (array > 0) {
    if (const auto task = slurm_number(job, "array_task_id")) return fmt::format("{}_{}", array, *task);
    return fmt::format("{}_[{}]", array, slurm_text(job, "array_task_string"));
  }
  const int64_t whole = slurm_number(job, "het_job_id").value_or(0);
  if (whole > 0) return fmt::format("{}+{}", whole, slurm_number(job, "het_job_offset").value_or(0));
  return std::to_string(id);
}

Error no_jobs_printed(const std::string& what) {
  return {what, "squeue --json", "Slurm 20.11 or later with its JSON serializer (json-c) is needed"};
}

// Names may be in any encoding; JSON is not.
nlohmann::json json_of(std::string text) {
  nlohmann::json whole = nlohmann::json::parse(text, nullptr, false);
  if (!whole.is_discarded()) return whole;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  return nlohmann::json::parse(text, nullptr, false);
}

}  // namespace

Result<std::string> run_command(const std::vector<std::string>& command) {
  for (const std::string& word : command) {
    if (word.find('\0') != std::string::npos) {
      return Error{"a word of the command has a NUL character in it", command.front(), "rename the job"};
    }
  }
  OutputPipe out;
  OutputPipe err;
  if (out.read_end < 0 || err.read_end < 0) return Error{"cannot run a command", command.front(), strerror(errno)};
  const pid_t child = start_command(command, out, err);
  if (child == 0) {
    if (errno == ENOENT) {
      return Error{"is not there", command.front(), "install slurm-wlm (or slurm-client), and set SLURM_CONF"};
    }
    return Error{std::string("cannot be run: ") + strerror(errno), command.front(), ""};
  }
  OutputPipe::close_end(out.write_end);
  OutputPipe::close_end(err.write_end);
  std::string output;
  std::string errors;
  const bool in_time = read_both(out, output, err, errors);
  if (!in_time) kill(-child, SIGKILL);
  const int status = wait_for_end(child);
  if (!in_time) return Error{fmt::format("timed out after {} s", kCommandSeconds), command.front(), ""};
  if (status == 0) return output;
  std::string& said = errors.empty() ? output : errors;
  while (said.ends_with('\n')) said.pop_back();
  return Error{said.empty() ? "failed" : said, command.front(), ""};
}

bool unreachable(const Error& error) {
  static constexpr std::array<std::string_view, 9> signs = {
      "ontact slurm controller", "onnection refused",           "imed out",
      "connect failure",         "Zero Bytes were transmitted", "ommunication connection failure",
      "not connected",           "Unexpected message received", "looking for jobs"};
  return std::any_of(signs.begin(), signs.end(),
                     [&](std::string_view sign) { return error.what.find(sign) != std::string::npos; });
}

bool SlurmJob::over() const {
  static const std::vector<std::string> running = {"",           "PENDING",   "RUNNING", "CONFIGURING",
                                                   "COMPLETING", "SUSPENDED", "REQUEUED"};
  return std::find(running.begin(), running.end(), state) == running.end();
}

bool SlurmJob::soft() const {
  return hard_limit_min && limit_min > 0 && (*hard_limit_min == 0 || limit_min < *hard_limit_min);
}

std::optional<int64_t> hard_limit_of(const std::string& admin_comment) {
  double seconds = 0;
  double memory = 0;
  int read_to = 0;
  // NOLINTNEXTLINE(cert-err34-c): a number that is none ends the match
  if (std::sscanf(admin_comment.c_str(), "forerun: predicted %lf s, %lf MiB of GPU memory, hard limit %n", &seconds,
                  &memory, &read_to) != 2 ||
      read_to == 0) {
    return {};
  }
  const std::string rest = admin_comment.substr(static_cast<size_t>(read_to));
  if (rest.starts_with("unlimited")) return 0;
  int64_t minutes = 0;
  size_t digits = 0;
  for (; digits < rest.size() && digits < 9 && rest[digits] >= '0' && rest[digits] <= '9'; ++digits) {
    minutes = minutes * 10 + (rest[digits] - '0');
  }
  if (minutes < 1 || rest.compare(digits, 4, " min") != 0) return {};
  return minutes;
}

Result<std::vector<SlurmJob>> parse_jobs(const std::string& text) {
  const nlohmann::json whole = json_of(text);
  if (!whole.is_object()) return no_jobs_printed("printed no JSON");
  // Where the controller does not answer, the exit status is 0 and the list is empty, but the fault is listed.
  if (const auto errors = whole.find("errors"); errors != whole.end() && errors->is_array() && !errors->empty()) {
    const nlohmann::json& first = errors->front();
    std::string what = first.is_object() ? slurm_text(first, "description") : "";
    if (what.empty() && first.is_object()) what = slurm_text(first, "error");
    return Error{what.empty() ? "failed" : what, "squeue --json", ""};
  }
  const auto list = whole.find("jobs");
  if (list == whole.end() || !list->is_array()) return no_jobs_printed("printed no list of jobs");
  std::vector<SlurmJob> jobs;
  for (const nlohmann::json& from : *list) {
    if (!from.is_object()) return no_jobs_printed("printed a job that is no object");
    SlurmJob job;
    job.id = slurm_number(from, "job_id").value_or(0);
    job.state = slurm_state(from);
    if (job.id <= 0 || job.state.empty()) return no_jobs_printed("printed a job without job_id or job_state");
    job.label = slurm_label(from, job.id);
    job.name = slurm_text(from, "name");
    job.comment = slurm_text(from, "comment");
    job.user = slurm_number(from, "user_id").value_or(-1);
    job.submit = slurm_number(from, "submit_time").value_or(0);
    job.start = slurm_number(from, "start_time").value_or(0);
    job.end = slurm_number(from, "end_time").value_or(0);
    job.limit_min = slurm_number(from, "time_limit").value_or(0);
    if (job.limit_min >= kNoLimit) job.limit_min = 0;
    job.hard_limit_min = hard_limit_of(slurm_text(from, "admin_comment"));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

Result<std::vector<SlurmJob>> show_jobs(const CommandRunner& run) {
  const Result<std::string> text = run({"squeue", "--json", "--all", "--states=all"});
  if (!text) return text.error();
  return parse_jobs(*text);
}

}  // namespace forerun
