#include "store/postgres_database.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <type_traits>

#ifdef FORERUN_HAS_LIBPQ
#include <libpq-fe.h>
#endif

namespace forerun::store {

bool names_postgres(const std::string& name) {
  return name.starts_with("postgresql://") || name.starts_with("postgres://");
}

// postgresql://user:secret@host/base?password=secret
std::string without_password(const std::string& url) {
  std::string shown = url;
  const size_t from = shown.find("://");
  if (from == std::string::npos) return shown;
  const size_t at =
      shown.rfind('@');  // the last: a password may hold one, and too much hidden is better than too little
  const size_t colon = shown.find(':', from + 3);
  if (at != std::string::npos && at > from && colon != std::string::npos && colon < at) {
    shown.replace(colon, at - colon, ":***");
  }
  for (size_t i = shown.find('?'); i != std::string::npos; i = shown.find('&', i + 1)) {
    const size_t equals = shown.find('=', i);
    const size_t next = std::min(shown.find('&', i + 1), shown.size());
    if (equals == std::string::npos || equals > next) continue;
    if (shown.substr(i + 1, equals - i - 1).find("pass") == std::string::npos) continue;
    shown.replace(equals + 1, next - equals - 1, "***");
  }
  return shown;
}

#ifndef FORERUN_HAS_LIBPQ

Result<std::unique_ptr<Database>> open_postgres(const std::string& url) {
  return Error{"this program was built without libpq, which speaks to PostgreSQL", without_password(url),
               "install libpq-dev and build again, or name a file"};
}

#else

namespace {

// Types of columns, as PostgreSQL numbers them.
constexpr Oid kBigint = 20, kSmallint = 21, kInteger = 23, kDouble = 701;

struct Clear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Answer = std::unique_ptr<PGresult, Clear>;

// '?' as $1, $2, ...; no statement has one within quotes.
std::string numbered(const std::string& sql) {
  std::string out;
  int count = 0;
  for (const char c : sql) {
    if (c == '?') {
      out += fmt::format("${}", ++count);
    } else {
      out += c;
    }
  }
  return out;
}

std::optional<std::string> text_of(const Value& value) {
  return std::visit(
      [](const auto& held) -> std::optional<std::string> {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::nullptr_t>) {
          return std::nullopt;
        } else if constexpr (std::is_same_v<Held, std::string>) {
          return held;
        } else {
          return fmt::format("{}", held);
        }
      },
      value);
}

Value value_at(const PGresult* answer, int row, int column) {
  if (PQgetisnull(answer, row, column) != 0) return nullptr;
  const char* text = PQgetvalue(answer, row, column);
  const char* end = text + PQgetlength(answer, row, column);
  const Oid type = PQftype(answer, column);
  if (type == kBigint || type == kInteger || type == kSmallint) {
    int64_t number = 0;
    std::from_chars(text, end, number);
    return number;
  }
  if (type == kDouble) {
    double number = 0;
    std::from_chars(text, end, number);
    return number;
  }
  return std::string(text, end);
}

// The first line of what libpq or the server says.
std::string first_line(const char* message) {
  const std::string text = message == nullptr ? "" : message;
  return text.substr(0, text.find('\n'));
}

class PostgresDatabase final : public Database {
 public:
  PostgresDatabase(PGconn* connection, std::string name) : connection_(connection), name_(std::move(name)) {}
  ~PostgresDatabase() override { PQfinish(connection_); }

  Result<std::vector<Row>> query(const std::string& sql, const std::vector<Value>& values) override {
    const auto answer = ask(sql, values);
    if (!answer) return answer.error();
    std::vector<Row> rows;
    const int count = PQntuples(answer->get()), columns = PQnfields(answer->get());
    rows.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      std::vector<Value> row;
      row.reserve(static_cast<size_t>(columns));
      for (int column = 0; column < columns; ++column) row.push_back(value_at(answer->get(), i, column));
      rows.emplace_back(std::move(row));
    }
    return rows;
  }

  Result<int64_t> change(const std::string& sql, const std::vector<Value>& values) override {
    const auto answer = ask(sql, values);
    if (!answer) return answer.error();
    const std::string count = PQcmdTuples(answer->get());
    int64_t number = 0;
    std::from_chars(count.data(), count.data() + count.size(), number);
    return number;
  }

  Status begin() override {
    within_ = false;
    Status status = run("BEGIN");
    within_ = status.ok();
    return status;
  }
  Status commit() override {
    within_ = false;
    return run("COMMIT");
  }
  void roll_back() override {
    within_ = false;
    (void)run("ROLLBACK");
  }

  Result<std::vector<std::string>> tables() override {
    const auto rows =
        query("SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()", {});
    if (!rows) return rows.error();
    std::vector<std::string> names;
    for (const Row& row : *rows) names.push_back(row.text(0));
    return names;
  }

  Status prepare() override { return {}; }
  Status mark() override { return {}; }  // its table is mark enough
  Result<bool> is_marked() override { return true; }
  [[nodiscard]] const std::string& name() const override { return name_; }

 private:
  Status run(const char* sql) {
    const auto answer = ask(sql, {});
    return answer ? Status() : Status(answer.error());
  }

  // A server that was started again is reached again, but never within a transaction, whose first half it has forgotten.
  Result<Answer> ask(const std::string& sql, const std::vector<Value>& values) {
    Answer answer = send(sql, values);
    if (!done(answer) && PQstatus(connection_) == CONNECTION_BAD && !within_) {
      PQreset(connection_);
      if (PQstatus(connection_) == CONNECTION_OK) answer = send(sql, values);
    }
    if (done(answer)) return answer;
    const char* said = answer ? PQresultErrorMessage(answer.get()) : PQerrorMessage(connection_);
    return Error{"PostgreSQL says: " + first_line(said), name_, ""};
  }

  Answer send(const std::string& sql, const std::vector<Value>& values) {
    std::vector<std::optional<std::string>> texts;
    for (const Value& value : values) texts.push_back(text_of(value));
    std::vector<const char*> bound;
    for (const auto& text : texts) bound.push_back(text ? text->c_str() : nullptr);
    return Answer(PQexecParams(connection_, numbered(sql).c_str(), static_cast<int>(bound.size()), nullptr,
                               bound.data(), nullptr, nullptr, 0));
  }

  static bool done(const Answer& answer) {
    const ExecStatusType status = PQresultStatus(answer.get());
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
  }

  PGconn* connection_;
  std::string name_;
  bool within_ = false;  // a transaction
};

}  // namespace

Result<std::unique_ptr<Database>> open_postgres(const std::string& url) {
  const std::string shown = without_password(url);
  PGconn* connection =
      PQconnectdb((url + (url.find('?') == std::string::npos ? "?" : "&") + "connect_timeout=10").c_str());
  auto database = std::make_unique<PostgresDatabase>(connection, shown);
  if (PQstatus(connection) != CONNECTION_OK) {
    // libpq may repeat the name that it could not read, password and all.
    return Error{url == shown ? "the server cannot be reached: " + first_line(PQerrorMessage(connection))
                              : "the server cannot be reached, or refuses the user",
                 shown, "see that it runs and that the name, user and password are right"};
  }
  PQsetNoticeProcessor(
      connection, [](void*, const char*) {}, nullptr);
  return std::unique_ptr<Database>(std::move(database));
}

#endif

}  // namespace forerun::store
