// Result<T>: a value, or an Error that is the input's fault.
//
// An Error says what went wrong, where (file, record, node, option) and what to do about it. One that only says that work
// was not brought to its end (base/work_control.h) has a kind of its own, so that nobody takes it for a fault.
// Libraries return it and never print or exit; only cli/ turns it into a message and an exit code.
// For our own faults use CHECK (base/check.h).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace forerun {

// Why there is no value: the input is at fault, somebody asked to stop, or a limit of WorkControl's budget was reached.
enum class ErrorKind : unsigned char { input, stopped, time_limit, memory_limit };

struct Error {
  std::string what;    // "shape has a negative extent (-3)"
  std::string where;   // "runs.jsonl.gz, record 12, op 40"; may be empty
  std::string remedy;  // "re-capture the run, or drop the record"; may be empty
  ErrorKind kind = ErrorKind::input;

  // Whether the work was ended from outside: asked again, perhaps with more time, it may well be answered.
  [[nodiscard]] bool is_unfinished() const { return kind != ErrorKind::input; }

  // One line: "where: what (remedy)".
  [[nodiscard]] std::string message() const {
    std::string text;
    if (!where.empty()) text += where + ": ";
    text += what;
    if (!remedy.empty()) text += "; " + remedy;
    return text;
  }

  // The same error seen from further out: "runs.jsonl.gz, " + where.
  [[nodiscard]] Error within(const std::string& place) const {
    return {what, where.empty() ? place : place + ", " + where, remedy, kind};
  }
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] const Error& error() const {
    CHECK(!ok(), "error() asked of a Result that holds a value");
    return std::get<1>(state_);
  }

 private:
  T& value() {
    CHECK(ok(), std::get<1>(state_).message());
    return std::get<0>(state_);
  }
  const T& value() const {
    CHECK(ok(), std::get<1>(state_).message());
    return std::get<0>(state_);
  }

  std::variant<T, Error> state_;
};

// Success without a value, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const Error& error() const {
    CHECK(error_.has_value(), "error() asked of a Status that is ok");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace forerun
