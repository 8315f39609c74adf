#include "store/schema.h"

#include <fmt/format.h>

#include <algorithm>

namespace forerun::store {
namespace {

struct Migration {
  int64_t to;  // the version that it makes
  std::vector<const char*> statements;
};

// In SQL that SQLite and PostgreSQL read alike. Times are microseconds since 1970, UTC. What lists show stands apart from the
// bodies, which may have megabytes.
const std::vector<Migration>& migrations() {
  static const std::vector<Migration> list = {
      {1,
       {"CREATE TABLE result (id TEXT PRIMARY KEY, kind TEXT NOT NULL, created BIGINT NOT NULL, question_hash TEXT NOT "
        "NULL, "
        "made_by TEXT NOT NULL, model TEXT, gpu TEXT, batch BIGINT, precision_name TEXT, iter_ms DOUBLE PRECISION, "
        "iter_low_ms DOUBLE PRECISION, iter_high_ms DOUBLE PRECISION, peak_reserved BIGINT, fits BIGINT)",
        "CREATE TABLE result_body (id TEXT PRIMARY KEY, question TEXT NOT NULL, answer TEXT NOT NULL)",
        "CREATE INDEX result_by_time ON result (created, id)",
        "CREATE INDEX result_by_kind ON result (kind, created, id)",
        "CREATE INDEX result_by_model ON result (model, created, id)",
        "CREATE INDEX result_by_gpu ON result (gpu, created, id)",
        "CREATE TABLE tag (result TEXT NOT NULL, name TEXT NOT NULL, content TEXT NOT NULL, PRIMARY KEY (result, "
        "name))",
        "CREATE INDEX tag_by_name ON tag (name, content, result)",
        "CREATE TABLE measurement (id TEXT PRIMARY KEY, result TEXT NOT NULL, created BIGINT NOT NULL, "
        "iter_ms DOUBLE PRECISION, peak_reserved BIGINT, machine TEXT NOT NULL)",
        "CREATE INDEX measurement_by_result ON measurement (result, created)",
        "CREATE TABLE upload (id TEXT PRIMARY KEY, kind TEXT NOT NULL, bytes BIGINT NOT NULL, name TEXT NOT NULL, "
        "created BIGINT NOT NULL)",
        "CREATE TABLE job (id TEXT PRIMARY KEY, question TEXT NOT NULL, body TEXT NOT NULL, state TEXT NOT NULL, "
        "server TEXT NOT NULL, created BIGINT NOT NULL, started BIGINT, ended BIGINT, result TEXT, error TEXT)",
        "CREATE INDEX job_by_time ON job (created, id)",
        "CREATE TABLE price (gpu TEXT PRIMARY KEY, per_hour DOUBLE PRECISION NOT NULL, currency TEXT NOT NULL, "
        "created BIGINT NOT NULL)"}},
  };
  return list;
}

Error not_ours(const Database& database) {
  return {"is a database, but no store of Forerun", database.name(), "name a store, or a new and empty place"};
}

Result<int64_t> version_of(Database& database, bool create, bool& made) {
  const auto tables = database.tables();
  if (!tables) return tables.error();
  if (tables->empty()) {
    if (!create) return Error{"is empty, and no store yet", database.name(), "`forerun serve --store` makes one of it"};
    made = true;
    return 0;
  }
  const auto marked = database.is_marked();
  if (!marked) return marked.error();
  if (!*marked || std::find(tables->begin(), tables->end(), "forerun_store") == tables->end())
    return not_ours(database);
  const auto rows = database.query("SELECT schema_version FROM forerun_store", {});
  if (!rows) return rows.error();
  if (rows->size() != 1 || rows->front().whole(0) < 1) return not_ours(database);
  return rows->front().whole(0);
}

Status change(Database& database, const char* sql, const std::vector<Value>& values = {}) {
  const auto done = database.change(sql, values);
  return done ? Status() : Status(done.error());
}

Status step_to(Database& database, const Migration& migration) {
  for (const char* statement : migration.statements) {
    if (Status status = change(database, statement); !status.ok()) return status;
  }
  return change(database, "UPDATE forerun_store SET schema_version = ?", {migration.to});
}

}  // namespace

Status prepare_schema(Database& database, bool create, bool& made) {
  made = false;
  const auto before = version_of(database, create, made);
  if (!before) return before.error();
  if (*before > kSchemaVersion) {
    return Error{fmt::format("is a store of a later Forerun (version {} of its tables; this one knows {})", *before,
                             kSchemaVersion),
                 database.name(), "use that Forerun"};
  }
  if (Status status = database.prepare(); !status.ok()) return status;
  if (*before == kSchemaVersion) return {};
  const auto transaction = Transaction::begin(database);
  if (!transaction) return transaction.error();
  made = false;  // looked at again, now that nobody else writes
  const auto now = version_of(database, create, made);
  if (!now) return now.error();
  if (*now == 0) {
    if (Status status = database.mark(); !status.ok()) return status;
    for (const Status& status : {change(database, "CREATE TABLE forerun_store (schema_version BIGINT NOT NULL)"),
                                 change(database, "INSERT INTO forerun_store VALUES (0)")}) {
      if (!status.ok()) return status;
    }
  }
  for (const Migration& migration : migrations()) {
    if (migration.to <= *now) continue;
    if (Status status = step_to(database, migration); !status.ok()) return status;
  }
  return (*transaction)->commit();
}

}  // namespace forerun::store
