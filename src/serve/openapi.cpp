#include "serve/openapi.h"

#include <fmt/format.h>

#include <map>

#include "base/json_writer.h"
#include "serve/routes.h"
#include "serve/words.h"

namespace forerun::serve {
namespace {

void write_type(JsonWriter& json, const Word& word) {
  json.begin_object();
  switch (word.kind) {
    case WordKind::number: json.field("type", "number"); break;
    case WordKind::flag: json.field("type", "boolean"); break;
    case WordKind::table:
    case WordKind::axes: json.field("type", "object"); break;
    case WordKind::list:
    case WordKind::policies:
    case WordKind::files: json.key("type").begin_array().value("array").value("string").end_array(); break;
    case WordKind::file: json.field("type", "string").field("description", "upload:ID"); break;
    case WordKind::model: json.field("type", "string").field("description", "a name of the zoo, or upload:ID"); break;
    case WordKind::text: json.field("type", "string"); break;
    case WordKind::any: break;
  }
  json.end_object();
}

void write_words(JsonWriter& json, const AllowedQuestion& question) {
  json.begin_object().field("type", "object").field("additionalProperties", false).key("properties").begin_object();
  for (const Word& word : question.words) {
    json.key(word.name);
    write_type(json, word);
  }
  json.end_object().end_object();
}

void write_body(JsonWriter& json, const char* type, const auto& schema) {
  json.key("requestBody")
      .begin_object()
      .field("required", true)
      .key("content")
      .begin_object()
      .key(type)
      .begin_object()
      .key("schema");
  schema();
  json.end_object().end_object().end_object();
}

void write_problem(JsonWriter& json) {
  json.key("default").begin_object().field("description", "a fault").key("content").begin_object();
  json.key("application/problem+json").begin_object().key("schema").begin_object();
  json.field("$ref", "#/components/schemas/problem").end_object().end_object().end_object().end_object();
}

const char* success_of(const Routes::Route& route) {
  const std::string_view path = route.path, method = route.method;
  if (method == "PUT" || (method == "DELETE" && path.find("/jobs/") == std::string_view::npos)) return "204";
  if (path.ends_with("/measurements") && method == "POST") return "204";
  if (path == "/api/v1/jobs" && method == "POST") return "202";
  if (path == "/api/v1/uploads" && method == "POST") return "201";
  return "200";
}

const char* type_of(const Routes::Route& route) {
  const std::string_view path = route.path;
  if (path == "/" || path == "/perfetto") return "text/html";
  if (path.ends_with("/content")) return "application/octet-stream";
  if (path == "/metrics") return "text/plain";
  return path.ends_with("/events") ? "text/event-stream" : "application/json";
}

void write_parameters(JsonWriter& json, const Routes::Route& route, std::string_view path) {
  json.key("parameters").begin_array();
  for (size_t at = path.find('{'); at != std::string_view::npos; at = path.find('{', at + 1)) {
    json.begin_object().field("name", path.substr(at + 1, path.find('}', at) - at - 1)).field("in", "path");
    json.field("required", true).key("schema").begin_object().field("type", "string").end_object().end_object();
  }
  for (const char* name : route.query) {
    json.begin_object().field("name", name).field("in", "query");
    json.key("schema").begin_object().field("type", "string").end_object().end_object();
  }
  json.end_array();
}

void write_request(JsonWriter& json, const Routes::Route& route, const AllowedQuestion* question) {
  const std::string_view method = route.method;
  if (method != "POST" && method != "PUT") return;
  if (question != nullptr) return write_body(json, "application/json", [&] { write_words(json, *question); });
  if (std::string_view(route.path) == "/api/v1/uploads") {
    return write_body(json, "application/octet-stream", [&] { json.begin_object().end_object(); });
  }
  write_body(json, "application/json", [&] { json.begin_object().field("type", "object").end_object(); });
}

void write_operation(JsonWriter& json, const Routes::Route& route, std::string_view path,
                     const AllowedQuestion* question) {
  std::string method = route.method;
  for (char& c : method) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::string id = method;
  for (const char c : path) id += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_';
  json.key(method)
      .begin_object()
      .field("operationId", id)
      .field("summary", question == nullptr ? route.does : question->does);
  write_parameters(json, route, path);
  write_request(json, route, question);
  json.key("responses").begin_object();
  const std::string_view success = success_of(route);
  json.key(success).begin_object().field("description", "done");
  if (success != "204") {
    json.key("content").begin_object().key(type_of(route)).begin_object().end_object().end_object();
  }
  json.end_object();
  write_problem(json);
  json.end_object();
  if (path == "/api/v1/health") json.key("security").begin_array().end_array();
  json.end_object();
}

void write_components(JsonWriter& json) {
  json.key("components").begin_object().key("securitySchemes").begin_object();
  json.key("token").begin_object().field("type", "http").field("scheme", "bearer").end_object().end_object();
  json.key("schemas")
      .begin_object()
      .key("problem")
      .begin_object()
      .field("type", "object")
      .key("properties")
      .begin_object();
  for (const char* name : {"type", "title", "detail", "where", "remedy"}) {
    json.key(name).begin_object().field("type", "string").end_object();
  }
  json.key("status").begin_object().field("type", "integer").end_object();
  json.end_object().end_object().end_object().end_object();
}

}  // namespace

std::string openapi_json() {
  struct Entry {
    const Routes::Route* route;
    const AllowedQuestion* question;
  };
  std::map<std::string, std::vector<Entry>> paths;
  for (const Routes::Route& route : Routes::list()) {
    const std::string path = route.path;
    if (!path.ends_with("{question}")) {
      paths[path].push_back({&route, nullptr});
      continue;
    }
    for (const AllowedQuestion& question : allowed_questions()) {
      if (question.at_once) paths[std::string("/api/v1/") + question.name].push_back({&route, &question});
    }
  }
  JsonWriter json(1);
  json.begin_object().field("openapi", "3.1.0").key("info").begin_object();
  json.field("title", "Forerun").field("version", FORERUN_VERSION);
  json.field("description",
             "Tells how a deep-learning training run will go before it is run. docs/serve.md says more.");
  json.end_object()
      .key("security")
      .begin_array()
      .begin_object()
      .key("token")
      .begin_array()
      .end_array()
      .end_object()
      .end_array();
  json.key("paths").begin_object();
  for (const auto& [path, entries] : paths) {
    json.key(path).begin_object();
    for (const Entry& entry : entries) write_operation(json, *entry.route, path, entry.question);
    json.end_object();
  }
  json.end_object();
  write_components(json);
  return json.end_object().take() + "\n";
}

}  // namespace forerun::serve
