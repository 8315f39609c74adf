// Routes of the store: uploads, results with tags and measurements, prices.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "ask/question.h"
#include "base/json_writer.h"
#include "serve/service.h"
#include "store/result_json.h"

namespace forerun::serve {
namespace {

using store::is_hex;

const Error kNoUpload{"there is no such upload", "id", "GET /api/v1/uploads lists them"};
const Error kNoResult{"there is no such result", "id", "GET /api/v1/results lists them"};

void write_upload(JsonWriter& json, const store::Upload& upload) {
  json.begin_object().field("id", upload.id).field("name", upload.name).field("bytes", upload.bytes);
  json.field("created", store::iso_time(upload.created));
  // {"kind": ..., "verbs": [...]} as the worker told it.
  const auto kind = nlohmann::ordered_json::parse(upload.kind, nullptr, false);
  json.field("kind", kind.is_object() ? kind.value("kind", "") : upload.kind);
  json.key("verbs").raw(kind.is_object() && kind.contains("verbs") ? kind["verbs"].dump() : "[]").end_object();
}

std::string upload_json(const store::Upload& upload) {
  JsonWriter json;
  write_upload(json, upload);
  return json.take();
}

Reply no_content() { return {.status = 204, .type = ""}; }

// A name of a tag, a GPU: short and printable; path parts are UTF-8 without control characters already.
std::optional<Reply> bad_name(const std::string& name, const char* where) {
  constexpr size_t kMost = 100;
  if (!name.empty() && name.size() <= kMost && name.find('=') == std::string::npos) return std::nullopt;
  return problem(400, {"is empty, longer than 100 bytes, or has a '='", where, "give a shorter name"});
}

Reply of_bool(const Result<bool>& done, const Error& missing) {
  if (!done) return problem(500, done.error());
  return *done ? no_content() : problem(404, missing);
}

}  // namespace

void Service::finish_upload(const Request& request, IncomingUpload& upload, const Done& done) {
  for (const auto& [key, value] : request.query) {
    if (key != "name")
      return done(problem(400, {fmt::format("there is no '{}' here", key.substr(0, 60)), "the query", "known: name"}));
  }
  const auto finished = upload.finish();
  if (!finished) return done(problem(400, finished.error()));
  const auto name = request.query.find("name");
  store::Upload row{.id = finished->id,
                    .name = shown_name(name == request.query.end() ? "" : name->second),
                    .bytes = finished->bytes,
                    .created = store::now_microseconds()};
  // What it is, a worker tells: the server itself reads no file of others.
  JsonWriter words;
  WorkerTask task{.lane = WorkerLane::uploads,
                  .name = "kind",
                  .words = words.begin_object().field("file", row.id).end_object().take(),
                  .key = row.id};
  task.done = [this, row, done](const Answered& answered) mutable {
    const bool known = [&] {
      const auto before = parts_.store.upload(row.id);
      return before && *before;
    }();
    if (answered.status != 200) {
      if (!known) parts_.uploads.remove(row.id);
      Error error = answered.error;
      if (error.where.find(row.id) != std::string::npos) error.where = row.name;
      return done(problem(answered.status, error));
    }
    row.kind = answered.text;
    if (const Status status = parts_.store.add_upload(row); !status.ok()) return done(problem(500, status.error()));
    Reply reply{.status = 201, .body = upload_json(row)};
    reply.headers.emplace_back("Location", "/api/v1/uploads/" + row.id);
    done(std::move(reply));
  };
  if (parts_.workers.ask(std::move(task)) == 0)
    done(problem(429, {"too many uploads at once", "", "try again in a moment"}));
}

void Service::list_uploads(const Request& /*request*/, const Captured& /*captured*/, const Done& done) {
  const auto uploads = parts_.store.uploads();
  if (!uploads) return done(problem(500, uploads.error()));
  JsonWriter json;
  json.begin_object().field("schema", "forerun.uploads/1").key("uploads").begin_array();
  for (const store::Upload& upload : *uploads) write_upload(json, upload);
  done({.body = json.end_array().end_object().take()});
}

void Service::show_upload(const Request& /*request*/, const Captured& captured, const Done& done) {
  const auto upload = parts_.store.upload(captured.at(0));
  if (!upload) return done(problem(500, upload.error()));
  done(*upload ? Reply{.body = upload_json(**upload)} : problem(404, kNoUpload));
}

// Never shown as a page: it is saved under its name.
void Service::upload_content(const Request& /*request*/, const Captured& captured, const Done& done) {
  if (!parts_.uploads.has(captured.at(0))) return done(problem(404, kNoUpload));
  const auto upload = parts_.store.upload(captured[0]);
  if (!upload) return done(problem(500, upload.error()));
  Reply reply{.type = "application/octet-stream", .file = parts_.uploads.path(captured[0])};
  const std::string name = *upload ? (*upload)->name : captured[0];
  reply.headers.emplace_back("Content-Disposition", "attachment; filename=\"" + name + "\"");
  done(std::move(reply));
}

void Service::delete_upload(const Request& /*request*/, const Captured& captured, const Done& done) {
  if (!is_hex(captured.at(0), 64)) return done(problem(404, kNoUpload));
  const auto removed = parts_.store.remove_upload(captured[0]);
  if (!removed) return done(problem(500, removed.error()));
  const bool file = parts_.uploads.remove(captured[0]);
  done(*removed || file ? no_content() : problem(404, kNoUpload));
}

void Service::list_results(const Request& request, const Captured& /*captured*/, const Done& done) {
  store::ResultFilter filter;
  const auto take = [&](const char* name, std::string& into) {
    const auto found = request.query.find(name);
    if (found != request.query.end()) into = found->second;
  };
  take("kind", filter.kind);
  take("model", filter.model);
  take("gpu", filter.gpu);
  take("tag", filter.tag);
  take("after", filter.after);
  std::string limit;
  take("limit", limit);
  if (!limit.empty()) {
    const char* end = limit.data() + limit.size();
    if (std::from_chars(limit.data(), end, filter.limit).ptr != end) filter.limit = 0;
  }
  const auto page = parts_.store.list(filter);
  if (!page) return done(problem(400, page.error()));
  done({.body = store::page_json(*page)});
}

void Service::show_result(const Request& /*request*/, const Captured& captured, const Done& done) {
  const auto result = parts_.store.result(captured.at(0));
  if (!result) return done(problem(500, result.error()));
  if (!*result) return done(problem(404, kNoResult));
  const auto measured = parts_.store.measurements(captured[0]);
  if (!measured) return done(problem(500, measured.error()));
  done({.body = store::result_json(**result, *measured)});
}

void Service::delete_result(const Request& /*request*/, const Captured& captured, const Done& done) {
  done(of_bool(parts_.store.remove_result(captured.at(0)), kNoResult));
}

void Service::put_tag(const Request& request, const Captured& captured, const Done& done) {
  if (const auto bad = bad_name(captured.at(1), "the tag's name")) return done(*bad);
  auto words = ask::Question::parse(request.body);
  if (!words) return done(problem(400, words.error()));
  const std::string content = words->has("value") ? words->text("value") : "";
  if (const Status status = words->status(); !status.ok()) return done(problem(400, status.error()));
  if (content.size() > 1000) return done(problem(400, {"is longer than 1000 bytes", "value", "give a shorter one"}));
  done(of_bool(parts_.store.tag(captured[0], captured[1], content), kNoResult));
}

void Service::delete_tag(const Request& /*request*/, const Captured& captured, const Done& done) {
  done(of_bool(parts_.store.untag(captured.at(0), captured.at(1)), {"there is no such tag", "the tag's name", ""}));
}

// {"iter_ms": 12.5, "peak_reserved": 1000000, "machine": "lab"}
void Service::add_measurement(const Request& request, const Captured& captured, const Done& done) {
  auto words = ask::Question::parse(request.body);
  if (!words) return done(problem(400, words.error()));
  store::Measurement one{.result = captured.at(0)};
  one.iter_ms = words->number("iter_ms", 1e-9, 1e12);
  one.peak_reserved = words->whole("peak_reserved", 1, int64_t{1} << 50);
  if (words->has("machine")) one.machine = words->text("machine");
  if (one.machine.size() > 200) words->refuse("machine", "is longer than 200 bytes", "give a shorter name");
  if (!one.iter_ms && !one.peak_reserved)
    words->refuse("iter_ms, peak_reserved", "are both missing", "give one of them");
  if (const Status status = words->status(); !status.ok()) return done(problem(400, status.error()));
  done(of_bool(parts_.store.measure(one), kNoResult));
}

void Service::list_measurements(const Request& /*request*/, const Captured& /*captured*/, const Done& done) {
  const auto measured = parts_.store.measurements("");
  if (!measured) return done(problem(500, measured.error()));
  JsonWriter json;
  json.begin_object().field("schema", "forerun.measurements/1").key("measurements").begin_array();
  for (const store::Measurement& one : *measured) {
    const auto result = parts_.store.result(one.result);
    if (!result) return done(problem(500, result.error()));
    if (!*result) continue;
    json.begin_object();
    store::write_fields(json, one);
    json.key("forecast").begin_object();
    store::write_fields(json, (*result)->row);
    json.end_object().end_object();
  }
  done({.body = json.end_array().end_object().take()});
}

void Service::list_prices(const Request& /*request*/, const Captured& /*captured*/, const Done& done) {
  const auto prices = parts_.store.prices();
  if (!prices) return done(problem(500, prices.error()));
  JsonWriter json;
  json.begin_object().field("schema", "forerun.prices/1").key("prices").begin_array();
  for (const store::Price& price : *prices) {
    json.begin_object().field("gpu", price.gpu).field("per_hour", price.per_hour).field("currency", price.currency);
    json.field("created", store::iso_time(price.created)).end_object();
  }
  done({.body = json.end_array().end_object().take()});
}

// {"per_hour": 2.5, "currency": "USD"}
void Service::put_price(const Request& request, const Captured& captured, const Done& done) {
  if (const auto bad = bad_name(captured.at(0), "the GPU's name")) return done(*bad);
  auto words = ask::Question::parse(request.body);
  if (!words) return done(problem(400, words.error()));
  store::Price price{.gpu = captured[0], .created = store::now_microseconds()};
  if (!words->has("per_hour")) words->refuse("per_hour", "is missing", "give what an hour costs");
  price.per_hour = words->number("per_hour", 0, 1e6).value_or(0);
  if (words->has("currency")) price.currency = words->text("currency");
  if (price.currency.size() > 20) words->refuse("currency", "is longer than 20 bytes", "give a shorter one, as USD");
  if (const Status status = words->status(); !status.ok()) return done(problem(400, status.error()));
  const Status status = parts_.store.set_price(price);
  done(status.ok() ? no_content() : problem(500, status.error()));
}

void Service::delete_price(const Request& /*request*/, const Captured& captured, const Done& done) {
  done(of_bool(parts_.store.remove_price(captured.at(0)),
               {"there is no price of it", "gpu", "GET /api/v1/prices lists them"}));
}

}  // namespace forerun::serve
