#include "cluster/sources/csv_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

namespace forerun::cluster {
namespace {

constexpr std::string_view kBlank = " \t\r";
std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return result;
}

// The digits at `text`'s front as a number; they are removed.
std::optional<int> take_digits(std::string_view& text, size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  for (size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// ":01:55" etc. after the date: seconds of the day, or nothing.
std::optional<int> parse_clock(std::string_view& text) {
  const auto hour = take_digits(text, 2);
  if (!hour || *hour > 23 || !take(text, ":")) return std::nullopt;
  const auto minute = take_digits(text, 2);
  if (!minute || *minute > 59) return std::nullopt;
  int second = 0;
  if (take(text, ":")) {
    const auto given = take_digits(text, 2);
    if (!given || *given > 60) return std::nullopt;
    second = *given;
  }
  return *hour * 3600 + *minute * 60 + second;
}

}  // namespace

void CsvRows::split(std::string_view line) {
  size_t at = 0;
  for (count_ = 0;; ++at) {
    if (count_ == cells_.size()) cells_.emplace_back();
    std::string& cell = cells_[count_++];  // strings of the row before are used again
    cell.clear();
    while (at < line.size() && line[at] == ' ') ++at;
    if (at < line.size() && line[at] == '"') {
      for (++at; at < line.size(); ++at) {
        if (line[at] == '"') {
          if (at + 1 >= line.size() || line[at + 1] != '"') break;
          ++at;
        }
        cell += line[at];
      }
      at = std::min(line.find(separator_, at), line.size());
    } else {
      const size_t end = std::min(line.find(separator_, at), line.size());
      cell = trimmed(line.substr(at, end - at));
      at = end;
    }
    if (at >= line.size()) return;
  }
}

Status CsvRows::begin() {
  if (!has_heading_) return {};
  const auto more = next();
  if (!more) return more.error();
  if (!*more) return Error{"the file is empty", name(), "give a table with a heading"};
  if (cells_.front().starts_with("\xef\xbb\xbf")) cells_.front().erase(0, 3);
  heading_.assign(cells_.begin(), cells_.begin() + static_cast<std::ptrdiff_t>(count_));
  for (size_t i = 0; i < heading_.size(); ++i) {
    if (heading_[i].empty() || *column(heading_[i]) == i) continue;
    return Error{fmt::format("the heading has the column '{}' twice", heading_[i]), name() + ":1",
                 "take one of the two out"};
  }
  return {};
}

Result<bool> CsvRows::next() {
  while (true) {
    auto line = reader_.next();
    if (!line) return line.error();
    if (!line->has_value()) return false;
    if (trimmed(**line).empty()) continue;
    split(**line);
    return true;
  }
}

std::optional<size_t> CsvRows::column(std::string_view wanted) const {
  for (size_t i = 0; i < heading_.size(); ++i) {
    if (lower(heading_[i]) == lower(wanted)) return i;
  }
  return std::nullopt;
}

Result<size_t> CsvRows::need(std::string_view wanted) const {
  if (const auto found = column(wanted)) return *found;
  return Error{fmt::format("the heading has no column '{}'", wanted), name() + ":1",
               fmt::format("it has {}; is --format right?", fmt::join(heading_, ", "))};
}

const std::string& CsvRows::cell(size_t column) const {
  static const std::string kNone;
  return column < count_ ? cells_[column] : kNone;
}

const std::string& CsvRows::cell(std::optional<size_t> column) const { return cell(column.value_or(count_)); }

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || stop != text.data() + text.size() || std::isnan(value)) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  const auto value = parse_number(text);
  if (!value || std::abs(*value) > 1e15 || *value != std::floor(*value)) return std::nullopt;
  return static_cast<int64_t>(*value);
}

std::optional<Time> parse_seconds(std::string_view text) {
  const auto value = parse_number(text);
  if (!value) return std::nullopt;
  if (std::isinf(*value) && *value > 0) return kNever;
  if (!(std::abs(*value) <= kMostSeconds)) return std::nullopt;
  return time_from_seconds(*value);
}

std::optional<Time> parse_date(std::string_view text) {
  text = trimmed(text);
  const auto year = take_digits(text, 4);
  if (!year || !take(text, "-/")) return std::nullopt;
  const auto month = take_digits(text, 2);
  if (!month || !take(text, "-/")) return std::nullopt;
  const auto day = take_digits(text, 2);
  if (!day || *year < 1970 || *year > 2200) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  int64_t seconds = std::chrono::sys_days(date).time_since_epoch().count() * int64_t{86400};
  Time fraction;
  if (take(text, "T ")) {
    const auto clock = parse_clock(text);
    if (!clock) return std::nullopt;
    seconds += *clock;
    if (text.starts_with('.')) {
      const auto rest = parse_seconds("0" + std::string(text));
      if (!rest) return std::nullopt;
      fraction = *rest;
      text = {};
    }
  }
  if (!text.empty()) return std::nullopt;
  return Time(seconds * kSecond.value) + fraction;
}

}  // namespace forerun::cluster
