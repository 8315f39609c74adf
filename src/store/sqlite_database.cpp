#include "store/sqlite_database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <type_traits>

namespace forerun::store {
namespace {

constexpr int kMark = 0x46524e31;  // "FRN1", as SQLite's application_id
constexpr int kBusyMs = 10000;

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

void bind_value(sqlite3_stmt* statement, int at, const Value& value) {
  std::visit(
      [&](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::nullptr_t>) {
          sqlite3_bind_null(statement, at);
        } else if constexpr (std::is_same_v<Held, int64_t>) {
          sqlite3_bind_int64(statement, at, held);
        } else if constexpr (std::is_same_v<Held, double>) {
          sqlite3_bind_double(statement, at, held);
        } else {
          sqlite3_bind_text64(statement, at, held.data(), held.size(), SQLITE_STATIC, SQLITE_UTF8);
        }
      },
      value);
}

Value value_at(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL: return nullptr;
    case SQLITE_INTEGER: return static_cast<int64_t>(sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT: return sqlite3_column_double(statement, column);
    default: {
      const void* bytes = sqlite3_column_blob(statement, column);
      const auto size = static_cast<size_t>(sqlite3_column_bytes(statement, column));
      return std::string(static_cast<const char*>(bytes), bytes == nullptr ? 0 : size);
    }
  }
}

class SqliteDatabase final : public Database {
 public:
  SqliteDatabase(sqlite3* connection, std::string name) : connection_(connection), name_(std::move(name)) {}
  ~SqliteDatabase() override { sqlite3_close_v2(connection_); }

  Result<std::vector<Row>> query(const std::string& sql, const std::vector<Value>& values) override {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(connection_, sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) return fault();
    const Statement statement(raw);
    for (size_t i = 0; i < values.size(); ++i) bind_value(raw, static_cast<int>(i) + 1, values[i]);
    std::vector<Row> rows;
    while (true) {
      const int step = sqlite3_step(raw);
      if (step == SQLITE_DONE) return rows;
      if (step != SQLITE_ROW) return fault();
      std::vector<Value> row;
      const int columns = sqlite3_column_count(raw);
      row.reserve(static_cast<size_t>(columns));
      for (int column = 0; column < columns; ++column) row.push_back(value_at(raw, column));
      rows.emplace_back(std::move(row));
    }
  }

  Result<int64_t> change(const std::string& sql, const std::vector<Value>& values) override {
    const auto done = query(sql, values);
    if (!done) return done.error();
    return static_cast<int64_t>(sqlite3_changes(connection_));
  }

  Status begin() override { return run("BEGIN IMMEDIATE"); }
  Status commit() override { return run("COMMIT"); }
  void roll_back() override { (void)run("ROLLBACK"); }

  Result<std::vector<std::string>> tables() override {
    const auto rows = query("SELECT name FROM sqlite_master WHERE type = 'table'", {});
    if (!rows) return rows.error();
    std::vector<std::string> names;
    for (const Row& row : *rows) names.push_back(row.text(0));
    return names;
  }

  // Readers and the one writer do not wait for each other; what is committed is on the disk.
  Status prepare() override { return run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"); }

  Status mark() override { return run(fmt::format("PRAGMA application_id = {}", kMark).c_str()); }
  Result<bool> is_marked() override {
    const auto rows = query("PRAGMA application_id", {});
    if (!rows) return rows.error();
    return !rows->empty() && rows->front().whole(0) == kMark;
  }

  [[nodiscard]] const std::string& name() const override { return name_; }

  Status run(const char* sql) {
    if (sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return fault();
    return {};
  }

 private:
  [[nodiscard]] Error fault() const {
    const int code = sqlite3_errcode(connection_);
    const std::string what = sqlite3_errmsg(connection_);
    switch (code) {
      case SQLITE_NOTADB: return {"is no SQLite file", name_, "name a store that Forerun made, or a new file"};
      case SQLITE_BUSY: return {"another program has been writing to it for 10 seconds", name_, "try again"};
      case SQLITE_FULL: return {"the disk is full", name_, "make room, or name a store elsewhere"};
      case SQLITE_READONLY: return {"cannot be written to: " + what, name_, "see its permissions"};
      default: return {"SQLite says: " + what, name_, ""};
    }
  }

  sqlite3* connection_;
  std::string name_;
};

// Made here, so that nobody else can read it from its first moment on.
Status make_file(const std::string& path) {
  const int file = open(path.c_str(), O_CREAT | O_EXCL | O_CLOEXEC | O_WRONLY, S_IRUSR | S_IWUSR);
  if (file < 0) {
    const int code = errno;
    return Error{std::string("cannot be made: ") + strerror(code), path,
                 code == ENOENT ? "make its folder first, or name a file elsewhere"
                                : "name a file in a folder that you may write to"};
  }
  close(file);
  return {};
}

}  // namespace

Result<std::unique_ptr<Database>> open_sqlite(const std::string& path, bool create) {
  struct stat there {};
  if (stat(path.c_str(), &there) != 0) {
    if (errno != ENOENT) {
      return Error{std::string("cannot be opened: ") + strerror(errno), path, "see the permissions of its folders"};
    }
    if (!create) return Error{"is not there", path, "name a store; `forerun serve --store FILE` makes one"};
    if (const Status made = make_file(path); !made.ok()) return made.error();
  } else if (!S_ISREG(there.st_mode)) {
    return Error{"is no plain file", path, "name a file, or postgresql://..."};
  }
  sqlite3* connection = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, nullptr);
  auto database = std::make_unique<SqliteDatabase>(connection, path);
  if (opened != SQLITE_OK) {
    return Error{std::string("cannot be opened: ") + (connection == nullptr ? "no memory" : sqlite3_errmsg(connection)),
                 path, "see its permissions"};
  }
  sqlite3_busy_timeout(connection, kBusyMs);
  // Reading comes first: a file that is not ours is left as it is.
  if (const auto tables = database->tables(); !tables) return tables.error();
  return std::unique_ptr<Database>(std::move(database));
}

}  // namespace forerun::store
