#include "cluster/sources/cell_values.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <string>

namespace forerun::cluster {
namespace {

constexpr std::string_view kBlank = " \t\r";
std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
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
