// Database: the little of SQL that a store needs, the same over SQLite and PostgreSQL.
//
// Statements are written once, in SQL that both take, with '?' for values, which are always bound and never pasted in. One
// connection, one caller at a time (Store has the lock). A transaction is begun with the intent to write, so that two writers
// wait for each other in place of failing half way.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"

namespace forerun::store {

using Value = std::variant<std::nullptr_t, int64_t, double, std::string>;

class Row {
 public:
  explicit Row(std::vector<Value> values) : values_(std::move(values)) {}
  [[nodiscard]] std::string text(size_t column) const;  // empty where it is NULL
  [[nodiscard]] int64_t whole(size_t column) const;     // 0 where it is NULL
  [[nodiscard]] std::optional<int64_t> maybe_whole(size_t column) const;
  [[nodiscard]] std::optional<double> maybe_number(size_t column) const;
  [[nodiscard]] std::optional<std::string> maybe_text(size_t column) const;

 private:
  std::vector<Value> values_;
};

class Database {
 public:
  Database() = default;
  virtual ~Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  virtual Result<std::vector<Row>> query(const std::string& sql, const std::vector<Value>& values) = 0;
  // Without rows; gives how many were changed.
  virtual Result<int64_t> change(const std::string& sql, const std::vector<Value>& values) = 0;
  virtual Status begin() = 0;
  virtual Status commit() = 0;
  virtual void roll_back() = 0;

  // The tables there are.
  virtual Result<std::vector<std::string>> tables() = 0;
  // Sets up what only a store of ours may be changed by.
  virtual Status prepare() = 0;
  // Marks a database that has no tables as a store of ours.
  virtual Status mark() = 0;
  // Whether it has the mark, where the kind of database has one beside its tables.
  virtual Result<bool> is_marked() = 0;
  // What messages call it: never with a password.
  [[nodiscard]] virtual const std::string& name() const = 0;
};

// Rolled back where it is not committed.
class Transaction {
 public:
  static Result<std::unique_ptr<Transaction>> begin(Database& database);
  explicit Transaction(Database& database) : database_(database) {}
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  Status commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace forerun::store
