// The tables of a store beside its results: tags, measurements, uploads, jobs, prices; and all of it copied.
#include <fmt/format.h>

#include "store/random_hex.h"
#include "store/store.h"

namespace forerun::store {
namespace {

constexpr const char* kJobColumns = "id, question, body, state, server, created, started, ended, result, error";

JobRow job_of(const Row& row) {
  return {.id = row.text(0),
          .question = row.text(1),
          .body = row.text(2),
          .state = row.text(3),
          .server = row.text(4),
          .created = row.whole(5),
          .started = row.maybe_whole(6),
          .ended = row.maybe_whole(7),
          .result = row.text(8),
          .error = row.text(9)};
}

std::vector<JobRow> jobs_of(const std::vector<Row>& rows) {
  std::vector<JobRow> jobs;
  for (const Row& row : rows) jobs.push_back(job_of(row));
  return jobs;
}

Measurement measurement_of(const Row& row) {
  return {.id = row.text(0),
          .result = row.text(1),
          .created = row.whole(2),
          .iter_ms = row.maybe_number(3),
          .peak_reserved = row.maybe_whole(4),
          .machine = row.text(5)};
}

Upload upload_of(const Row& row) {
  return {.id = row.text(0), .kind = row.text(1), .name = row.text(3), .bytes = row.whole(2), .created = row.whole(4)};
}

template <class T>
Value or_null(const std::optional<T>& known) {
  return known ? Value(*known) : Value(nullptr);
}
Value or_null(const std::string& text) { return text.empty() ? Value(nullptr) : Value(text); }

Status status_of(const Result<int64_t>& done) { return done ? Status() : Status(done.error()); }

Status put_measurement(Database& database, const Measurement& one) {
  return status_of(database.change(
      "INSERT INTO measurement (id, result, created, iter_ms, peak_reserved, machine) VALUES (?, ?, ?, ?, ?, ?) "
      "ON CONFLICT DO NOTHING",
      {one.id, one.result, one.created, or_null(one.iter_ms), or_null(one.peak_reserved), one.machine}));
}

}  // namespace

Result<bool> Store::tag(const std::string& result, const std::string& name, const std::string& content) {
  const std::lock_guard lock(busy_);
  auto known = there_is(result);
  if (!known || !*known) return known;
  const auto done = database_->change(
      "INSERT INTO tag (result, name, content) VALUES (?, ?, ?) ON CONFLICT (result, name) DO UPDATE SET content = "
      "excluded.content",
      {result, name, content});
  if (!done) return done.error();
  return true;
}

Result<bool> Store::untag(const std::string& result, const std::string& name) {
  const std::lock_guard lock(busy_);
  const auto done = database_->change("DELETE FROM tag WHERE result = ? AND name = ?", {result, name});
  if (!done) return done.error();
  return *done > 0;
}

Result<bool> Store::measure(Measurement measurement) {
  const std::lock_guard lock(busy_);
  const auto known = there_is(measurement.result);
  if (!known || !*known) return known;
  measurement.id = random_hex(16);
  measurement.created = now_microseconds();
  if (const Status status = put_measurement(*database_, measurement); !status.ok()) return status.error();
  return true;
}

Result<std::vector<Measurement>> Store::measurements(const std::string& result, int64_t limit) {
  const std::lock_guard lock(busy_);
  const std::string where = result.empty() ? "" : " WHERE result = ?";
  const auto rows = database_->query(
      fmt::format(
          "SELECT id, result, created, iter_ms, peak_reserved, machine FROM measurement{} ORDER BY created DESC, "
          "id LIMIT {}",
          where, limit),
      result.empty() ? std::vector<Value>() : std::vector<Value>{result});
  if (!rows) return rows.error();
  std::vector<Measurement> found;
  for (const Row& row : *rows) found.push_back(measurement_of(row));
  return found;
}

Status Store::add_upload(const Upload& upload) {
  const std::lock_guard lock(busy_);
  return status_of(
      database_->change("INSERT INTO upload (id, kind, bytes, name, created) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) "
                        "DO UPDATE SET name = "
                        "excluded.name, created = excluded.created",
                        {upload.id, upload.kind, upload.bytes, upload.name, upload.created}));
}

Result<std::vector<Upload>> Store::uploads(int64_t limit) {
  const std::lock_guard lock(busy_);
  const auto rows = database_->query(
      fmt::format("SELECT id, kind, bytes, name, created FROM upload ORDER BY created DESC, id LIMIT {}", limit), {});
  if (!rows) return rows.error();
  std::vector<Upload> found;
  for (const Row& row : *rows) found.push_back(upload_of(row));
  return found;
}

Result<std::optional<Upload>> Store::upload(const std::string& id) {
  const std::lock_guard lock(busy_);
  const auto rows = database_->query("SELECT id, kind, bytes, name, created FROM upload WHERE id = ?", {id});
  if (!rows) return rows.error();
  return rows->empty() ? std::optional<Upload>() : std::optional(upload_of(rows->front()));
}

Result<bool> Store::remove_upload(const std::string& id) {
  const std::lock_guard lock(busy_);
  const auto done = database_->change("DELETE FROM upload WHERE id = ?", {id});
  if (!done) return done.error();
  return *done > 0;
}

Status Store::put_job(const JobRow& job) {
  const std::lock_guard lock(busy_);
  return status_of(database_->change(
      fmt::format("INSERT INTO job ({}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET state = "
                  "excluded.state, started = excluded.started, ended = excluded.ended, result = excluded.result, "
                  "error = excluded.error",
                  kJobColumns),
      {job.id, job.question, job.body, job.state, job.server, job.created, or_null(job.started), or_null(job.ended),
       or_null(job.result), or_null(job.error)}));
}

Result<std::vector<JobRow>> Store::jobs(int64_t limit) {
  const std::lock_guard lock(busy_);
  const auto rows = database_->query(
      fmt::format("SELECT {} FROM job ORDER BY created DESC, id DESC LIMIT {}", kJobColumns, limit), {});
  if (!rows) return rows.error();
  return jobs_of(*rows);
}

Result<std::optional<JobRow>> Store::job(const std::string& id) {
  const std::lock_guard lock(busy_);
  const auto rows = database_->query(fmt::format("SELECT {} FROM job WHERE id = ?", kJobColumns), {id});
  if (!rows) return rows.error();
  return rows->empty() ? std::optional<JobRow>() : std::optional(job_of(rows->front()));
}

Result<std::vector<JobRow>> Store::unfinished_jobs() {
  const std::lock_guard lock(busy_);
  const auto rows =
      database_->query(fmt::format("SELECT {} FROM job WHERE state IN ('waiting', 'running')", kJobColumns), {});
  if (!rows) return rows.error();
  return jobs_of(*rows);
}

Status Store::set_price(const Price& price) {
  const std::lock_guard lock(busy_);
  return status_of(
      database_->change("INSERT INTO price (gpu, per_hour, currency, created) VALUES (?, ?, ?, ?) ON CONFLICT (gpu) DO "
                        "UPDATE SET per_hour "
                        "= excluded.per_hour, currency = excluded.currency, created = excluded.created",
                        {price.gpu, price.per_hour, price.currency, price.created}));
}

Result<std::vector<Price>> Store::prices() {
  const std::lock_guard lock(busy_);
  const auto rows = database_->query("SELECT gpu, per_hour, currency, created FROM price ORDER BY gpu", {});
  if (!rows) return rows.error();
  std::vector<Price> found;
  for (const Row& row : *rows) {
    found.push_back({.gpu = row.text(0),
                     .currency = row.text(2),
                     .per_hour = row.maybe_number(1).value_or(0),
                     .created = row.whole(3)});
  }
  return found;
}

Result<bool> Store::remove_price(const std::string& gpu) {
  const std::lock_guard lock(busy_);
  const auto done = database_->change("DELETE FROM price WHERE gpu = ?", {gpu});
  if (!done) return done.error();
  return *done > 0;
}

Result<Counts> Store::counts() {
  const std::lock_guard lock(busy_);
  const auto rows = database_->query(
      "SELECT (SELECT COUNT(*) FROM result), (SELECT COUNT(*) FROM tag), (SELECT COUNT(*) FROM measurement), "
      "(SELECT COUNT(*) FROM upload), (SELECT COUNT(*) FROM job), (SELECT COUNT(*) FROM price)",
      {});
  if (!rows) return rows.error();
  const Row& row = rows->front();
  return Counts{row.whole(0), row.whole(1), row.whole(2), row.whole(3), row.whole(4), row.whole(5)};
}

// A page a transaction: what was copied stays where it is stopped, and copying again goes on from there.
Status Store::copy_to(Store& other, const WorkControl& control) {
  const auto all = counts();
  if (!all) return all.error();
  Work work(control, "results", all->results);
  constexpr int64_t kBunch = 200;
  for (std::string after;;) {
    const auto page = list({.after = after, .limit = kBunch});
    if (!page) return page.error();
    std::vector<KeptResult> bunch;
    std::vector<Measurement> measured;
    for (const ResultRow& row : page->rows) {
      auto kept = result(row.id);
      if (!kept) return kept.error();
      if (!*kept) continue;  // deleted meanwhile
      bunch.push_back(std::move(**kept));
      const auto of_it = measurements(row.id);
      if (!of_it) return of_it.error();
      measured.insert(measured.end(), of_it->begin(), of_it->end());
    }
    {
      const std::lock_guard lock(other.busy_);
      const auto transaction = Transaction::begin(*other.database_);
      if (!transaction) return transaction.error();
      for (const KeptResult& kept : bunch) {
        if (Status status = other.put_result(kept); !status.ok()) return status;
      }
      for (const Measurement& one : measured) {
        if (Status status = put_measurement(*other.database_, one); !status.ok()) return status;
      }
      if (Status status = (*transaction)->commit(); !status.ok()) return status;
    }
    if (Status status = work.advance(static_cast<int64_t>(bunch.size())); !status.ok()) return status;
    if (page->next.empty()) break;
    after = page->next;
  }
  const auto finished = jobs(1'000'000);
  if (!finished) return finished.error();
  for (const JobRow& job : *finished) {
    if (job.state == "waiting" || job.state == "running") continue;  // their server's
    if (Status status = other.put_job(job); !status.ok()) return status;
  }
  const auto known = prices();
  if (!known) return known.error();
  for (const Price& price : *known) {
    if (Status status = other.set_price(price); !status.ok()) return status;
  }
  return {};
}

}  // namespace forerun::store
