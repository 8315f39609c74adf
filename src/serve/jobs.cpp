#include "serve/jobs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/json_writer.h"
#include "base/options_text.h"
#include "serve/exchange.h"
#include "store/random_hex.h"

namespace forerun::serve {
namespace {

constexpr double kLongest = 24 * 3600;  // seconds

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "host";
}

std::string json_of(const store::JobRow& row, const WorkerProgress& progress) {
  JsonWriter json;
  const auto text_or_null = [&](const char* name, const std::string& text) {
    json.key(name);
    text.empty() ? json.value(nullptr) : json.value(text);
  };
  json.begin_object().field("schema", "forerun.job/1").field("id", row.id).field("question", row.question);
  json.field("state", row.state).key("progress").begin_object();
  json.field("what", progress.what).field("done", progress.done).field("total", progress.total).end_object();
  const auto time_or_null = [&](const char* name, const std::optional<int64_t>& time) {
    text_or_null(name, time ? store::iso_time(*time) : "");
  };
  time_or_null("created", row.created);
  time_or_null("started", row.started);
  time_or_null("ended", row.ended);
  text_or_null("result", row.result);
  json.key("error").raw(row.error.empty() ? "null" : row.error).key("body").raw(row.body);
  return json.end_object().take();
}

}  // namespace

// Jobs that a server of this machine left behind are over; those of other machines are theirs.
Jobs::Jobs(store::Store& store, Workers& workers)
    : store_(store), workers_(workers), server_(fmt::format("{}:{}", host_name(), getpid())) {
  const auto left = store.unfinished_jobs();
  if (!left) return;
  for (store::JobRow job : *left) {
    const size_t colon = job.server.rfind(':');
    const auto pid = number_in(job.server.substr(colon == std::string::npos ? 0 : colon + 1));
    if (job.server.substr(0, colon) != host_name() || !pid) continue;
    if (*pid != getpid() && kill(static_cast<pid_t>(*pid), 0) == 0) continue;
    job.state = "failed";
    job.ended = store::now_microseconds();
    job.error = problem_json(503, {"the server ended before the job did", "", "ask it again"});
    (void)store.put_job(job);
  }
}

Result<std::optional<std::string>> Jobs::start(JobStart start) {
  Live job;
  job.row = {.id = store::random_hex(16),
             .question = start.question,
             .body = start.body,
             .state = "waiting",
             .server = server_,
             .created = store::now_microseconds()};
  const std::string id = job.row.id;
  if (const Status status = store_.put_job(job.row); !status.ok()) return status.error();
  const std::string shown = json_of(job.row, {});
  WorkerTask task{.lane = WorkerLane::jobs, .name = start.question, .words = start.words, .seconds = kLongest};
  task.started = [this, id] { on_started(id); };
  task.progress = [this, id](const WorkerProgress& progress) { on_progress(id, progress); };
  task.done = [this, id, start = std::move(start)](Answered answered) { on_done(id, start, std::move(answered)); };
  const std::lock_guard lock(busy_);
  job.task = workers_.ask(std::move(task));
  if (job.task == 0) {
    job.row.state = "failed";
    job.row.ended = store::now_microseconds();
    job.row.error = problem_json(429, {"too many jobs wait already", "", "ask again later"});
    (void)store_.put_job(job.row);
    return std::optional<std::string>();
  }
  live_.emplace(id, std::move(job));
  return std::optional(shown);
}

void Jobs::tell(Live& job, const char* event, bool last) {
  const std::string data = json_of(job.row, job.progress);
  for (const auto& listener : job.listeners) listener->send(event, data, last);
  std::erase_if(job.listeners, [](const auto& listener) { return listener->closed(); });
}

void Jobs::on_started(const std::string& id) {
  const std::lock_guard lock(busy_);
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  found->second.row.state = "running";
  found->second.row.started = store::now_microseconds();
  (void)store_.put_job(found->second.row);
  tell(found->second, "progress", false);
}

void Jobs::on_progress(const std::string& id, const WorkerProgress& progress) {
  const std::lock_guard lock(busy_);
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  found->second.progress = progress;
  tell(found->second, "progress", false);
}

void Jobs::on_done(const std::string& id, const JobStart& start, Answered answered) {
  std::string result;
  if (answered.status == 200) {
    auto kept = store_.keep(start.result(answered.text));
    if (kept) {
      result = *kept;
    } else {
      answered = {500, "", kept.error()};
    }
  }
  const std::lock_guard lock(busy_);
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  store::JobRow& row = found->second.row;
  row.state = answered.status == 200 ? "done" : answered.status == 409 ? "cancelled" : "failed";
  row.ended = store::now_microseconds();
  row.result = result;
  if (row.state == "failed") row.error = problem_json(answered.status, start.shown(answered.error));
  (void)store_.put_job(row);
  tell(found->second, row.state.c_str(), true);
  live_.erase(found);
}

Result<std::optional<std::string>> Jobs::json(const std::string& id) {
  {
    const std::lock_guard lock(busy_);
    const auto found = live_.find(id);
    if (found != live_.end()) return std::optional(json_of(found->second.row, found->second.progress));
  }
  const auto row = store_.job(id);
  if (!row) return row.error();
  return *row ? std::optional(json_of(**row, {})) : std::nullopt;
}

Result<std::string> Jobs::list_json() {
  const auto rows = store_.jobs();
  if (!rows) return rows.error();
  JsonWriter json;
  json.begin_object().field("schema", "forerun.jobs/1").key("jobs").begin_array();
  const std::lock_guard lock(busy_);
  for (const store::JobRow& row : *rows) {
    const auto found = live_.find(row.id);
    json.raw(found == live_.end() ? json_of(row, {}) : json_of(found->second.row, found->second.progress));
  }
  return json.end_array().end_object().take();
}

Result<std::optional<std::string>> Jobs::cancel(const std::string& id) {
  {
    const std::lock_guard lock(busy_);
    const auto found = live_.find(id);
    if (found != live_.end()) workers_.cancel(found->second.task);
  }
  return json(id);
}

Result<std::shared_ptr<EventStream>> Jobs::listen(const std::string& id) {
  auto stream = std::make_shared<EventStream>();
  {
    const std::lock_guard lock(busy_);
    const auto found = live_.find(id);
    if (found != live_.end()) {
      stream->send("progress", json_of(found->second.row, found->second.progress));
      found->second.listeners.push_back(stream);
      return stream;
    }
  }
  const auto row = store_.job(id);
  if (!row) return row.error();
  if (!*row) return std::shared_ptr<EventStream>();
  stream->send((*row)->state, json_of(**row, {}), true);
  return stream;
}

void Jobs::beat() {
  const std::lock_guard lock(busy_);
  for (auto& [id, job] : live_) {
    for (const auto& listener : job.listeners) listener->beat();
    std::erase_if(job.listeners, [](const auto& listener) { return listener->closed(); });
  }
}

void Jobs::close() {
  const std::lock_guard lock(busy_);
  for (auto& [id, job] : live_) {
    for (const auto& listener : job.listeners) listener->close();
    job.listeners.clear();
  }
}

size_t Jobs::live() {
  const std::lock_guard lock(busy_);
  return live_.size();
}

}  // namespace forerun::serve
