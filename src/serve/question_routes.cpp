// Routes that ask: questions at once, jobs, catalogues and timelines.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "ask/question.h"
#include "base/json_writer.h"
#include "predict/machine_calibration.h"
#include "serve/service.h"

namespace forerun::serve {
namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr double kAtOnceSeconds = 30;
constexpr double kTraceSeconds = 120;  // a gigabyte is read the first time

const Error kFull{"too many questions wait already", "", "ask again in a moment"};

bool lists_always(std::string_view name) {
  return name == "devices" || name == "links" || name == "models" || name == "optimizations";
}

template <class T>
std::optional<T> field_of(const ordered_json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return std::nullopt;
  if constexpr (std::is_same_v<T, std::string>) {
    return found->is_string() ? std::optional(found->get<std::string>()) : std::nullopt;
  } else if constexpr (std::is_same_v<T, bool>) {
    return found->is_boolean() ? std::optional(found->get<bool>()) : std::nullopt;
  } else {
    return found->is_number() ? std::optional(found->get<T>()) : std::nullopt;
  }
}

std::string key_of(const std::vector<std::string>& ids) {
  std::string key;
  for (const std::string& id : ids) key += (key.empty() ? "" : ",") + id;
  return key;
}

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

// CSV and the like as JSON.
std::string wrapped(const std::string& question, const std::string& text) {
  if (question != "jobs") return as_one_json(text, false);
  JsonWriter json;
  return json.begin_object().field("schema", "forerun.schedule.jobs/1").field("csv", text).end_object().take();
}

}  // namespace

std::string as_one_json(std::string text, bool always_list) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  if ((!always_list || text.starts_with('[')) && text.find('\n') == std::string::npos) return text;
  // An answer over several lines is indented: what begins a line with '{' is the next one.
  std::vector<std::string_view> lines;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = rest.front() == '[' ? rest.size() : std::min(rest.find("\n{"), rest.size());
    std::string_view answer = rest.substr(0, end);
    while (answer.ends_with('\n')) answer.remove_suffix(1);
    if (!answer.empty()) lines.push_back(answer);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (lines.size() == 1 && (!always_list || lines[0].front() == '[')) return std::string(lines[0]);
  std::string list = "[";
  for (const std::string_view line : lines) list.append(list.size() == 1 ? "" : ",").append(line);
  return list + "]";
}

store::ResultFigures figures_of(const std::string& answer, const std::string& question) {
  auto said = ordered_json::parse(answer, nullptr, false);
  const auto asked = ordered_json::parse(question, nullptr, false);
  store::ResultFigures figures;
  if (!said.is_object()) said = ordered_json::object();
  const auto either = [&](const char* name) -> std::optional<std::string> {
    if (auto text = field_of<std::string>(said, name)) return text;
    return asked.is_object() ? field_of<std::string>(asked, name) : std::nullopt;
  };
  figures.model =
      asked.is_object() && asked.contains("model") ? field_of<std::string>(asked, "model") : either("model");
  figures.gpu = either("gpu");
  figures.precision = either("precision");
  figures.batch = field_of<int64_t>(said, "batch");
  if (!figures.batch && asked.is_object()) figures.batch = field_of<int64_t>(asked, "batch");
  figures.iter_ms = field_of<double>(said, "iter_ms");
  figures.iter_low_ms = field_of<double>(said, "iter_low_ms");
  figures.iter_high_ms = field_of<double>(said, "iter_high_ms");
  figures.peak_reserved = field_of<int64_t>(said, "peak_reserved");
  figures.fits = field_of<bool>(said, "fits");
  return figures;
}

std::string Service::hash_of(const std::string& question, const std::string& words) const {
  const std::string machine = configured_machine();
  std::error_code error;
  const auto size = machine.empty() ? 0 : std::filesystem::file_size(machine, error);
  const auto written =
      machine.empty() || error ? 0 : std::filesystem::last_write_time(machine, error).time_since_epoch().count();
  return sha256_hex(fmt::format("{}\n{}\n{}\n{} {} {}", question, words, parts_.made_by, machine, size, written))
      .substr(0, 32);
}

Result<Admitted> Service::admitted(const AllowedQuestion& question, std::string_view body) {
  auto admitted = admit(question, body, [this](const std::string& id) { return parts_.uploads.has(id); });
  if (!admitted || admitted->uploads.empty() || parts_.bounded_workers) return admitted;
  // Rows of a table of jobs may name models by paths of this machine.
  const std::string_view name = question.name;
  if (name != "schedule" && name != "jobs") return admitted;
  return Error{"tables of jobs may name files, and this kernel has no Landlock to keep their reader from them", "file",
               "use `forerun schedule` on the command line"};
}

// Names are plain (shown_name), so that they can stand in JSON and CSV as they are.
std::string Service::with_names(std::string text, const std::vector<std::string>& uploads) {
  for (const std::string& id : uploads) {
    const auto known = parts_.store.upload(id);
    if (known && *known) replace_all(text, id, (*known)->name);
  }
  return text;
}

Error Service::with_names(const Error& error, const std::vector<std::string>& uploads) {
  return {with_names(error.what, uploads), with_names(error.where, uploads), with_names(error.remedy, uploads),
          error.kind};
}

void Service::catalogue(const Request& request, const Captured& /*captured*/, const Done& done) {
  const std::string name = request.path.back();
  {
    const std::lock_guard lock(catalogues_busy_);
    if (const auto found = catalogues_.find(name); found != catalogues_.end()) return done({.body = found->second});
  }
  WorkerTask task{.name = name, .words = "{}", .seconds = kAtOnceSeconds};
  task.done = [this, name, done](Answered answered) {
    if (answered.status != 200) return done(problem(answered.status, answered.error));
    const std::string json = as_one_json(std::move(answered.text), lists_always(name));
    {
      const std::lock_guard lock(catalogues_busy_);
      catalogues_[name] = json;
    }
    done({.body = json});
  };
  if (parts_.workers.ask(std::move(task)) == 0) done(problem(429, kFull));
}

void Service::question(const Request& request, const Captured& captured, const Done& done) {
  const AllowedQuestion& asked = *find_question(captured.at(0));
  if (!asked.at_once) {
    return done(problem(400, {fmt::format("'{}' takes too long to be waited for", asked.name), "",
                              "ask it as a job: POST /api/v1/jobs"}));
  }
  const auto keep_word = request.query.find("keep");
  const bool keep = keep_word != request.query.end() && keep_word->second == "true";
  if (keep_word != request.query.end() && !keep && keep_word->second != "false") {
    return done(problem(400, {"cannot be '" + keep_word->second.substr(0, 20) + "'", "keep", "give true or false"}));
  }
  auto question = admitted(asked, request.body);
  if (!question) return done(problem(400, question.error()));
  const std::string hash = hash_of(asked.name, question->json);
  const std::string tag = "\"" + hash + "\"";
  if (!keep && request.head.if_none_match == tag) {
    Reply same{.status = 304};
    same.headers.emplace_back("ETag", tag);
    return done(std::move(same));
  }
  // The names of uploads may change, and are part of their answers.
  const bool lasting = question->uploads.empty();
  if (auto known = lasting && !keep ? answers_.find(hash) : std::nullopt) {
    ++traffic_.questions;
    ++traffic_.known;
    Reply reply{.body = std::move(*known)};
    reply.headers.emplace_back("ETag", tag);
    return done(std::move(reply));
  }
  WorkerTask task{.lane = question->uploads.empty() ? WorkerLane::plain : WorkerLane::uploads,
                  .name = asked.name,
                  .words = question->json,
                  .key = key_of(question->uploads),
                  .seconds = std::string_view(asked.name) == "trace" ? kTraceSeconds : kAtOnceSeconds};
  task.done = [this, keep, lasting, tag, hash, done, name = std::string(asked.name), body = request.body,
               uploads = question->uploads, began = Clock::now()](Answered answered) {
    ++traffic_.questions;
    traffic_.question_microseconds +=
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began).count();
    if (answered.status != 200) return done(problem(answered.status, with_names(answered.error, uploads)));
    Reply reply{.body = with_names(as_one_json(std::move(answered.text), false), uploads)};
    if (lasting) answers_.keep(hash, reply.body);
    reply.headers.emplace_back("ETag", tag);
    if (keep) {
      const auto id = parts_.store.keep({.kind = name,
                                         .question = body,
                                         .answer = reply.body,
                                         .question_hash = hash,
                                         .made_by = parts_.made_by,
                                         .figures = figures_of(reply.body, with_names(body, uploads))});
      if (!id) return done(problem(500, id.error()));
      reply.headers.emplace_back("Forerun-Result", *id);
    }
    done(std::move(reply));
  };
  if (parts_.workers.ask(std::move(task)) == 0) done(problem(429, kFull));
}

// {"question": "sweep", "body": {...}}
void Service::start_job(const Request& request, const Captured& /*captured*/, const Done& done) {
  constexpr const char* kForm = "give {\"question\": \"sweep\", \"body\": {...}}";
  if (const auto sound = ask::Question::parse(request.body); !sound) return done(problem(400, sound.error()));
  const auto words = ordered_json::parse(request.body, nullptr, false);
  for (const auto& [name, value] : words.items()) {
    if (name != "question" && name != "body")
      return done(problem(400, {"there is no word '" + name.substr(0, 60) + "' here", "", kForm}));
  }
  const auto name = field_of<std::string>(words, "question");
  const auto body = words.find("body");
  if (!name || body == words.end() || !body->is_object()) return done(problem(400, {"is no job", "the body", kForm}));
  const AllowedQuestion* asked = find_question(*name);
  if (asked == nullptr) {
    std::string known;
    for (const AllowedQuestion& one : allowed_questions())
      known += fmt::format("{}{}", known.empty() ? "" : ", ", one.name);
    return done(
        problem(400, {fmt::format("there is no question '{}'", name->substr(0, 60)), "question", "known: " + known}));
  }
  const std::string text = body->dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  auto question = admitted(*asked, text);
  if (!question) return done(problem(400, question.error()));
  const std::string hash = hash_of(*name, question->json);
  JobStart start{.question = *name, .body = text, .words = question->json};
  start.result = [this, hash, text, name = *name, uploads = question->uploads](const std::string& answer) {
    const std::string json = wrapped(name, with_names(answer, uploads));
    return store::NewResult{.kind = name,
                            .question = text,
                            .answer = json,
                            .question_hash = hash,
                            .made_by = parts_.made_by,
                            .figures = figures_of(json, with_names(text, uploads))};
  };
  start.shown = [this, uploads = question->uploads](const Error& error) { return with_names(error, uploads); };
  const auto job = parts_.jobs.start(std::move(start));
  if (!job) return done(problem(500, job.error()));
  if (!*job) return done(problem(429, {"too many jobs wait already", "", "ask again later, or cancel one"}));
  Reply reply{.status = 202, .body = **job};
  reply.headers.emplace_back("Location", "/api/v1/jobs/" + ordered_json::parse(**job).value("id", ""));
  done(std::move(reply));
}

void Service::list_jobs(const Request& /*request*/, const Captured& /*captured*/, const Done& done) {
  const auto jobs = parts_.jobs.list_json();
  done(jobs ? Reply{.body = *jobs} : problem(500, jobs.error()));
}

namespace {

const Error kNoJob{"there is no such job", "id", "GET /api/v1/jobs lists them"};

Reply job_reply(const Result<std::optional<std::string>>& job) {
  if (!job) return problem(500, job.error());
  return *job ? Reply{.body = **job} : problem(404, kNoJob);
}

}  // namespace

void Service::show_job(const Request& /*request*/, const Captured& captured, const Done& done) {
  done(job_reply(parts_.jobs.json(captured.at(0))));
}

void Service::cancel_job(const Request& /*request*/, const Captured& captured, const Done& done) {
  done(job_reply(parts_.jobs.cancel(captured.at(0))));
}

void Service::job_events(const Request& /*request*/, const Captured& captured, const Done& done) {
  auto stream = parts_.jobs.listen(captured.at(0));
  if (!stream) return done(problem(500, stream.error()));
  if (*stream == nullptr) return done(problem(404, kNoJob));
  done({.type = "text/event-stream", .body = "", .headers = {}, .events = *stream});
}

void Service::timeline(const Request& request, const Captured& captured, const Done& done) {
  const std::string& id = captured.at(0);
  if (!parts_.uploads.has(id))
    return done(problem(404, {"there is no such upload", "id", "GET /api/v1/uploads lists them"}));
  JsonWriter json;
  json.begin_object().field("file", id);
  for (const auto& [name, text] : request.query) {
    int64_t number = 0;
    const char* end = text.data() + text.size();
    if (text.empty() || std::from_chars(text.data(), end, number).ptr != end) {
      return done(problem(400, {fmt::format("cannot be '{}'", text.substr(0, 40)), name, "give a whole number"}));
    }
    json.field(name, number);
  }
  WorkerTask task{.lane = WorkerLane::uploads,
                  .name = "slices",
                  .words = json.end_object().take(),
                  .key = id,
                  .seconds = kTraceSeconds};
  task.done = [this, done, id](Answered answered) {
    if (answered.status != 200) return done(problem(answered.status, with_names(answered.error, {id})));
    done({.body = std::move(answered.text)});
  };
  if (parts_.workers.ask(std::move(task)) == 0) done(problem(429, kFull));
}

}  // namespace forerun::serve
