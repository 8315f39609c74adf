#include "serve/routes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/data_dir.h"
#include "base/json_writer.h"
#include "base/small_file.h"
#include "base/work_control.h"
#include "cluster/policies.h"
#include "page/page.h"
#include "serve/openapi.h"

namespace forerun::serve {
namespace {

// "/api/v1/results/{id}" in parts.
std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  for (size_t from = 1; from < path.size();) {
    const size_t end = std::min(path.find('/', from), path.size());
    parts.emplace_back(path.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

bool matches(const std::vector<std::string>& pattern, const std::vector<std::string>& path,
             std::vector<std::string>& captured) {
  if (pattern.size() != path.size()) return false;
  captured.clear();
  for (size_t i = 0; i < path.size(); ++i) {
    if (pattern[i].front() == '{') {
      captured.push_back(path[i]);
    } else if (pattern[i] != path[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

const std::vector<Routes::Route>& Routes::list() {
  constexpr bool kAside = true;
  static const std::vector<Route> routes = {
      {"GET", "/", "the page", &Service::page},
      {"GET", "/perfetto", "hands an uploaded trace to Perfetto when one clicks", &Service::perfetto},
      {"GET", "/metrics", "counts, as Prometheus reads them", &Service::metrics},
      {"GET", "/api/v1/health", "whether the server answers; needs no token", &Service::health},
      {"GET", "/api/v1/openapi.json", "this contract", &Service::openapi},
      {"GET", "/api/v1/devices", "the GPUs that can be named", &Service::catalogue},
      {"GET", "/api/v1/links", "the links between them", &Service::catalogue},
      {"GET", "/api/v1/models", "the models that can be named", &Service::catalogue},
      {"GET", "/api/v1/optimizations", "what whatif can apply", &Service::catalogue},
      {"GET", "/api/v1/policies", "the policies of schedule", &Service::policies},
      {"GET", "/api/v1/accuracy", "how good predictions are: the evaluations of this version", &Service::accuracy},
      {"POST", "/api/v1/{question}", "a question, answered at once", &Service::question, {"keep"}},
      {"GET", "/api/v1/jobs", "the last jobs", &Service::list_jobs, {}, kAside},
      {"POST", "/api/v1/jobs", "a question, answered in the background", &Service::start_job, {}, kAside},
      {"GET", "/api/v1/jobs/{id}", "how far a job is", &Service::show_job, {}, kAside},
      {"DELETE", "/api/v1/jobs/{id}", "cancels a job", &Service::cancel_job, {}, kAside},
      {"GET", "/api/v1/jobs/{id}/events", "a job's progress as server-sent events", &Service::job_events, {}, kAside},
      {"GET", "/api/v1/uploads", "the uploads", &Service::list_uploads, {}, kAside},
      {"POST", "/api/v1/uploads", "uploads a file: the body is the file", nullptr, {"name"}},
      {"GET", "/api/v1/uploads/{id}", "what is known of an upload", &Service::show_upload, {}, kAside},
      {"GET", "/api/v1/uploads/{id}/content", "the file that was uploaded", &Service::upload_content, {}, kAside},
      {"DELETE", "/api/v1/uploads/{id}", "removes an upload", &Service::delete_upload, {}, kAside},
      {"GET",
       "/api/v1/timeline/{id}",
       "a stretch of an uploaded trace's timeline",
       &Service::timeline,
       {"from", "to", "px"}},
      {"GET",
       "/api/v1/results",
       "kept answers, newest first",
       &Service::list_results,
       {"kind", "model", "gpu", "tag", "after", "limit"},
       kAside},
      {"GET", "/api/v1/results/{id}", "a kept answer with its question", &Service::show_result, {}, kAside},
      {"DELETE", "/api/v1/results/{id}", "removes a kept answer", &Service::delete_result, {}, kAside},
      {"PUT", "/api/v1/results/{id}/tags/{key}", "tags a kept answer", &Service::put_tag, {}, kAside},
      {"DELETE", "/api/v1/results/{id}/tags/{key}", "takes a tag away", &Service::delete_tag, {}, kAside},
      {"POST", "/api/v1/results/{id}/measurements", "what the run really took", &Service::add_measurement, {}, kAside},
      {"GET",
       "/api/v1/measurements",
       "forecasts and what was measured, side by side",
       &Service::list_measurements,
       {},
       kAside},
      {"GET", "/api/v1/prices", "the user's own prices", &Service::list_prices, {}, kAside},
      {"PUT", "/api/v1/prices/{gpu}", "sets a price", &Service::put_price, {}, kAside},
      {"DELETE", "/api/v1/prices/{gpu}", "removes a price", &Service::delete_price, {}, kAside},
  };
  return routes;
}

// A route that is spelt out comes before one that captures.
Routes::Found Routes::find(std::string_view method, const std::vector<std::string>& path) {
  Found found;
  std::vector<std::string> captured;
  for (const bool spelt : {true, false}) {
    for (const Route& route : list()) {
      if (!matches(parts_of(route.path), path, captured)) continue;
      if (std::string_view(route.path).ends_with("{question}") == spelt) continue;
      if (std::string_view(route.path).ends_with("{question}") && find_question(captured[0]) == nullptr) continue;
      if (method == route.method || (method == "HEAD" && std::string_view(route.method) == "GET")) {
        return {&route, captured, {}};
      }
      found.methods.emplace_back(route.method);
    }
  }
  return found;
}

Service::Service(ServiceParts parts)
    : parts_(std::move(parts)),
      page_(page::server_page({.version = FORERUN_VERSION})),
      page_policy_(page::server_policy()) {}

std::optional<Reply> Service::refused(const Request& request) {
  const auto link = request.query.find("token");
  auto reply = serve::refused(request.head, parts_.access, link == request.query.end() ? "" : link->second);
  if (reply) {
    ++traffic_.refused;
    return reply;
  }
  const std::string& method = request.head.method;
  if (method != "GET" && method != "HEAD" && method != "POST" && method != "PUT" && method != "DELETE") {
    return problem(405, {fmt::format("the method {} is not taken", method.substr(0, 20)), "", ""});
  }
  if (method == "POST" || method == "PUT") {
    const std::string type = request.head.content_type.substr(0, request.head.content_type.find(';'));
    const std::string wanted = is_upload(request) ? "application/octet-stream" : "application/json";
    if (type != wanted) {
      return problem(415, {fmt::format("cannot be '{}'", type.substr(0, 60)), "Content-Type", "send " + wanted});
    }
  }
  return std::nullopt;
}

bool Service::is_upload(const Request& request) {
  return request.head.method == "POST" && request.path == std::vector<std::string>{"api", "v1", "uploads"};
}

void Service::handle(const Request& request, const Done& done) {
  const Routes::Found found = Routes::find(request.head.method, request.path);
  if (found.route == nullptr && !found.methods.empty()) {
    Reply reply = problem(405, {fmt::format("the method {} is not taken here", request.head.method),
                                request.head.target, fmt::format("use {}", fmt::join(found.methods, " or "))});
    reply.headers.emplace_back("Allow", fmt::format("{}", fmt::join(found.methods, ", ")));
    return done(std::move(reply));
  }
  if (found.route == nullptr || found.route->handler == nullptr) {
    return done(problem(404, {"there is no such route", request.head.target, "GET /api/v1/openapi.json lists them"}));
  }
  for (const auto& [name, value] : request.query) {
    const auto& known = found.route->query;
    const bool token = found.route->handler == &Service::page && name == "token";
    if (!token && std::none_of(known.begin(), known.end(), [&, &key = name](const char* one) { return key == one; })) {
      return done(problem(400, {fmt::format("there is no '{}' here", name.substr(0, 60)), "the query",
                                known.empty() ? "leave it out" : fmt::format("known: {}", fmt::join(known, ", "))}));
    }
  }
  if (!found.route->aside) return (this->*found.route->handler)(request, found.captured, done);
  // The connection may be gone when its turn comes: the request is the work's own.
  const bool taken = aside_.add(request.body.size(), [this, request, done, found] {
    (this->*found.route->handler)(request, found.captured, done);
  });
  if (!taken) done(problem(429, {"too many requests wait for the store already", "", "try again in a moment"}));
}

void Service::page(const Request& request, const Captured& /*captured*/, const Done& done) {
  if (request.query.contains("token")) return done(let_in(parts_.access));
  Reply reply{.type = "text/html; charset=utf-8", .body = page_};
  reply.headers.emplace_back("Content-Security-Policy", page_policy_);
  done(std::move(reply));
}

// The page again, as the only one that may talk to a window that it opens (web/src/screens/perfetto.tsx). It stands in a window of
// its own, so that what it opens has no hold on the others.
void Service::perfetto(const Request& /*request*/, const Captured& /*captured*/, const Done& done) {
  Reply reply{.type = "text/html; charset=utf-8", .body = page_};
  reply.headers.emplace_back("Content-Security-Policy", page_policy_);
  reply.headers.emplace_back("Cross-Origin-Opener-Policy", "same-origin-allow-popups");
  done(std::move(reply));
}

void Service::health(const Request& /*request*/, const Captured& /*captured*/, const Done& done) {
  JsonWriter json;
  done({.body = json.begin_object().field("status", "ok").field("version", FORERUN_VERSION).end_object().take()});
}

void Service::openapi(const Request& /*request*/, const Captured& /*captured*/, const Done& done) {
  done({.body = openapi_json()});
}

void Service::accuracy(const Request& /*request*/, const Captured& /*captured*/, const Done& done) {
  const auto data = data_dir();
  if (!data) return done(problem(500, data.error()));
  JsonWriter json;
  json.begin_object();
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(*data / "evaluations", error)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    const auto text = read_small_file(file, {size_t{4} << 20, ""});
    if (!text) return done(problem(500, text.error()));
    json.key(file.stem().string()).raw(*text);
  }
  done({.body = json.end_object().take()});
}

void Service::policies(const Request& /*request*/, const Captured& /*captured*/, const Done& done) {
  JsonWriter json;
  json.begin_array();
  for (const cluster::PolicyEntry& entry : cluster::policies()) {
    json.begin_object().field("name", entry.name).field("summary", entry.description).end_object();
  }
  done({.body = json.end_array().take()});
}

void Service::metrics(const Request& /*request*/, const Captured& /*captured*/, const Done& done) {
  std::string text;
  const auto add = [&](const char* name, const char* kind, const char* help) {
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, kind);
  };
  add("forerun_requests_total", "counter", "Requests that were answered, by the first digit of their status.");
  for (int digit = 1; digit <= 5; ++digit) {
    text += fmt::format("forerun_requests_total{{status=\"{}xx\"}} {}\n", digit, traffic_.by_status[digit].load());
  }
  const auto one = [&](const char* name, const char* kind, const char* help, auto value) {
    add(name, kind, help);
    text += fmt::format("{} {}\n", name, value);
  };
  one("forerun_refused_total", "counter", "Requests without a right to ask.", traffic_.refused.load());
  one("forerun_known_answers_total", "counter", "Questions that were answered from before.", traffic_.known.load());
  add("forerun_question_seconds", "summary", "How long questions that are answered at once took, waiting included.");
  text += fmt::format("forerun_question_seconds_sum {}\nforerun_question_seconds_count {}\n",
                      static_cast<double>(traffic_.question_microseconds.load()) / 1e6, traffic_.questions.load());
  const Workers::Figures workers = parts_.workers.figures();
  one("forerun_questions_waiting", "gauge", "Questions that wait for a process.", workers.waiting);
  one("forerun_questions_working", "gauge", "Questions that a process works on.", workers.working);
  one("forerun_worker_processes", "gauge", "Processes that answer.", workers.processes);
  one("forerun_worker_starts_total", "counter", "Processes that were started.", workers.started);
  one("forerun_worker_crashes_total", "counter", "Processes that ended by themselves.", workers.ended_badly);
  one("forerun_jobs_live", "gauge", "Jobs that wait or run.", parts_.jobs.live());
  one("forerun_upload_bytes", "gauge", "Bytes of uploads on disk.", parts_.uploads.held());
  one("forerun_resident_bytes", "gauge", "Memory of the server, without its processes.", resident_memory().value);
  done({.type = "text/plain; version=0.0.4; charset=utf-8", .body = text});
}

}  // namespace forerun::serve
