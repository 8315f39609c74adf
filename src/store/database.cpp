#include "store/database.h"

namespace forerun::store {

std::optional<std::string> Row::maybe_text(size_t column) const {
  const auto* text = std::get_if<std::string>(&values_.at(column));
  return text == nullptr ? std::nullopt : std::optional(*text);
}
std::string Row::text(size_t column) const { return maybe_text(column).value_or(""); }

std::optional<int64_t> Row::maybe_whole(size_t column) const {
  const auto* number = std::get_if<int64_t>(&values_.at(column));
  return number == nullptr ? std::nullopt : std::optional(*number);
}
int64_t Row::whole(size_t column) const { return maybe_whole(column).value_or(0); }

std::optional<double> Row::maybe_number(size_t column) const {
  if (const auto* number = std::get_if<double>(&values_.at(column))) return *number;
  if (const auto whole = maybe_whole(column)) return static_cast<double>(*whole);
  return std::nullopt;
}

Result<std::unique_ptr<Transaction>> Transaction::begin(Database& database) {
  if (const Status status = database.begin(); !status.ok()) return status.error();
  return std::make_unique<Transaction>(database);
}

Transaction::~Transaction() {
  if (open_) database_.roll_back();
}

Status Transaction::commit() {
  Status status = database_.commit();
  if (status.ok()) open_ = false;
  return status;
}

}  // namespace forerun::store
