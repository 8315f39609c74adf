#include "store/store.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "base/options_text.h"
#include "store/postgres_database.h"
#include "store/random_hex.h"
#include "store/schema.h"
#include "store/sqlite_database.h"

namespace forerun::store {
namespace {

constexpr int64_t kMostRows = 1000;
constexpr const char* kColumns =
    "id, kind, created, question_hash, made_by, model, gpu, batch, precision_name, iter_ms, iter_low_ms, iter_high_ms, "
    "peak_reserved, fits";

template <class T>
Value value_of(const std::optional<T>& known) {
  if (!known) return nullptr;
  if constexpr (std::is_same_v<T, bool>) {
    return int64_t{*known ? 1 : 0};
  } else {
    return *known;
  }
}

ResultRow row_of(const Row& row) {
  ResultRow result{.id = row.text(0),
                   .kind = row.text(1),
                   .created = row.whole(2),
                   .question_hash = row.text(3),
                   .made_by = row.text(4)};
  result.figures = {.model = row.maybe_text(5),
                    .gpu = row.maybe_text(6),
                    .precision = row.maybe_text(8),
                    .batch = row.maybe_whole(7),
                    .iter_ms = row.maybe_number(9),
                    .iter_low_ms = row.maybe_number(10),
                    .iter_high_ms = row.maybe_number(11),
                    .peak_reserved = row.maybe_whole(12)};
  if (const auto fits = row.maybe_whole(13)) result.figures.fits = *fits != 0;
  return result;
}

// "1763440000000000-0123..." of the last row of a page: where the next begins.
std::string cursor_of(const ResultRow& row) { return fmt::format("{}-{}", row.created, row.id); }

Status add_cursor(const std::string& after, std::string& where, std::vector<Value>& values) {
  if (after.empty()) return {};
  const size_t dash = after.find('-');
  const auto created = number_in(after.substr(0, dash));
  if (dash == std::string::npos || !created || *created < 0 || *created > 9e15 || !is_hex(after.substr(dash + 1), 32)) {
    return Error{"is no place in a list", "after", "give what the page before has as `next`"};
  }
  where += " AND (created, id) < (?, ?)";
  values.emplace_back(static_cast<int64_t>(*created));
  values.emplace_back(after.substr(dash + 1));
  return {};
}

// "name" or "name=value".
void add_tag(const std::string& tag, std::string& where, std::vector<Value>& values) {
  if (tag.empty()) return;
  const size_t equals = tag.find('=');
  where += " AND EXISTS (SELECT 1 FROM tag WHERE tag.result = result.id AND tag.name = ?";
  values.emplace_back(tag.substr(0, equals));
  if (equals != std::string::npos) {
    where += " AND tag.content = ?";
    values.emplace_back(tag.substr(equals + 1));
  }
  where += ")";
}

}  // namespace

int64_t now_microseconds() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string iso_time(int64_t microseconds) {
  const time_t seconds = microseconds / 1'000'000;
  tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, microseconds % 1'000'000);
}

Result<std::unique_ptr<Store>> Store::open(const std::string& name, Options options) {
  auto database = names_postgres(name) ? open_postgres(name) : open_sqlite(name, options.create);
  if (!database) return database.error();
  bool made = false;
  if (const Status status = prepare_schema(**database, options.create, made); !status.ok()) return status.error();
  return std::make_unique<Store>(std::move(*database), made);
}

Status Store::put_result(const KeptResult& result) {
  const ResultRow& row = result.row;
  const ResultFigures& figures = row.figures;
  const auto added = database_->change(
      fmt::format("INSERT INTO result ({}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                  kColumns),
      {row.id, row.kind, row.created, row.question_hash, row.made_by, value_of(figures.model), value_of(figures.gpu),
       value_of(figures.batch), value_of(figures.precision), value_of(figures.iter_ms), value_of(figures.iter_low_ms),
       value_of(figures.iter_high_ms), value_of(figures.peak_reserved), value_of(figures.fits)});
  if (!added) return added.error();
  const auto body =
      database_->change("INSERT INTO result_body (id, question, answer) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                        {row.id, result.question, result.answer});
  if (!body) return body.error();
  for (const auto& [name, content] : row.tags) {
    const auto tagged = database_->change(
        "INSERT INTO tag (result, name, content) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", {row.id, name, content});
    if (!tagged) return tagged.error();
  }
  return {};
}

Result<std::string> Store::keep(const NewResult& result) {
  const auto ids = keep_all({result});
  return ids ? Result<std::string>(ids->front()) : ids.error();
}

Result<std::vector<std::string>> Store::keep_all(const std::vector<NewResult>& results, const Tags& tags) {
  const std::lock_guard lock(busy_);
  const auto transaction = Transaction::begin(*database_);
  if (!transaction) return transaction.error();
  std::vector<std::string> ids;
  for (const NewResult& result : results) {
    const KeptResult kept{.row = {.id = random_hex(16),
                                  .kind = result.kind,
                                  .created = now_microseconds(),
                                  .question_hash = result.question_hash,
                                  .made_by = result.made_by,
                                  .figures = result.figures,
                                  .tags = tags},
                          .question = result.question,
                          .answer = result.answer};
    if (const Status status = put_result(kept); !status.ok()) return status.error();
    ids.push_back(kept.row.id);
  }
  if (const Status status = (*transaction)->commit(); !status.ok()) return status.error();
  return ids;
}

Result<std::vector<ResultRow>> Store::rows_of(const std::string& where, const std::vector<Value>& values) {
  const auto rows = database_->query(fmt::format("SELECT {} FROM result WHERE {}", kColumns, where), values);
  if (!rows) return rows.error();
  std::vector<ResultRow> found;
  found.reserve(rows->size());
  for (const Row& row : *rows) found.push_back(row_of(row));
  if (const Status status = read_tags(found); !status.ok()) return status.error();
  return found;
}

// Of all rows at once: one question a page, not one a row.
Status Store::read_tags(std::vector<ResultRow>& rows) {
  if (rows.empty()) return {};
  std::string places;
  std::vector<Value> ids;
  std::map<std::string, ResultRow*> by_id;
  for (ResultRow& row : rows) {
    places += places.empty() ? "?" : ", ?";
    ids.emplace_back(row.id);
    by_id[row.id] = &row;
  }
  const auto tags =
      database_->query(fmt::format("SELECT result, name, content FROM tag WHERE result IN ({})", places), ids);
  if (!tags) return tags.error();
  for (const Row& tag : *tags) by_id.at(tag.text(0))->tags[tag.text(1)] = tag.text(2);
  return {};
}

Result<ResultPage> Store::list(const ResultFilter& filter) {
  if (filter.limit < 1 || filter.limit > kMostRows) {
    return Error{fmt::format("cannot be {}", filter.limit), "limit", fmt::format("give 1 to {}", kMostRows)};
  }
  std::string where = "1 = 1";
  std::vector<Value> values;
  const auto equal = [&](const char* column, const std::string& wanted) {
    if (wanted.empty()) return;
    where += fmt::format(" AND {} = ?", column);
    values.emplace_back(wanted);
  };
  equal("kind", filter.kind);
  equal("model", filter.model);
  equal("gpu", filter.gpu);
  add_tag(filter.tag, where, values);
  if (const Status status = add_cursor(filter.after, where, values); !status.ok()) return status.error();
  where += fmt::format(" ORDER BY created DESC, id DESC LIMIT {}", filter.limit + 1);
  const std::lock_guard lock(busy_);
  auto rows = rows_of(where, values);
  if (!rows) return rows.error();
  ResultPage page{.rows = std::move(*rows)};
  if (page.rows.size() > static_cast<size_t>(filter.limit)) {
    page.rows.pop_back();
    page.next = cursor_of(page.rows.back());
  }
  return page;
}

Result<std::optional<KeptResult>> Store::result(const std::string& id) {
  const std::lock_guard lock(busy_);
  auto rows = rows_of("id = ?", {id});
  if (!rows) return rows.error();
  if (rows->empty()) return std::optional<KeptResult>();
  const auto body = database_->query("SELECT question, answer FROM result_body WHERE id = ?", {id});
  if (!body) return body.error();
  if (body->empty()) return Error{"the result has no body: the store is damaged", name() + ", result " + id, ""};
  return std::optional(KeptResult{std::move(rows->front()), body->front().text(0), body->front().text(1)});
}

Result<bool> Store::remove_result(const std::string& id) {
  const std::lock_guard lock(busy_);
  const auto transaction = Transaction::begin(*database_);
  if (!transaction) return transaction.error();
  for (const char* sql : {"DELETE FROM tag WHERE result = ?", "DELETE FROM measurement WHERE result = ?",
                          "DELETE FROM result_body WHERE id = ?"}) {
    if (const auto done = database_->change(sql, {id}); !done) return done.error();
  }
  const auto removed = database_->change("DELETE FROM result WHERE id = ?", {id});
  if (!removed) return removed.error();
  if (const Status status = (*transaction)->commit(); !status.ok()) return status.error();
  return *removed > 0;
}

Result<std::string> Store::result_beginning(const std::string& beginning) {
  constexpr const char* kRemedy = "`forerun store list` shows them";
  if (beginning == "last") {
    const auto page = list({.limit = 1});
    if (!page) return page.error();
    if (page->rows.empty()) return Error{"nothing is kept yet", name(), ""};
    return page->rows.front().id;
  }
  if (beginning.size() < 4 || beginning.size() > 32 || !is_hex(beginning, beginning.size())) {
    return Error{fmt::format("'{}' is no id of a result", beginning), "",
                 "give at least 4 of its digits; " + std::string(kRemedy)};
  }
  const std::lock_guard lock(busy_);
  const auto rows = database_->query("SELECT id FROM result WHERE id >= ? AND id <= ? ORDER BY id LIMIT 2",
                                     {beginning, beginning + std::string(32 - beginning.size(), 'f')});
  if (!rows) return rows.error();
  if (rows->empty()) return Error{fmt::format("there is no result '{}'", beginning), name(), kRemedy};
  if (rows->size() > 1)
    return Error{fmt::format("several results begin with '{}'", beginning), name(), "give more digits"};
  return rows->front().text(0);
}

Result<bool> Store::there_is(const std::string& result) {
  const auto rows = database_->query("SELECT id FROM result WHERE id = ?", {result});
  if (!rows) return rows.error();
  return !rows->empty();
}

}  // namespace forerun::store
