#include "base/options_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/nearest.h"

namespace forerun {
namespace {

constexpr double kNoLimit = 1e300;  // a range up to it has no upper end worth naming

// The same with the whole text in its place, for errors about a part of it.
OptionGrammar within_text(const OptionGrammar& grammar, std::string_view text) {
  if (grammar.where.empty()) return grammar;
  return {fmt::format("{} {}", grammar.where, text), grammar.remedy};
}

Result<KeyValues> parse_parts(std::string_view list, char separator, const OptionGrammar& grammar) {
  KeyValues options;
  for (const std::string_view part : split_list(list, std::string_view(&separator, 1))) {
    Result<KeyValue> option = parse_key_value(part, grammar);
    if (!option) return option.error();
    if (Status status = add_once(std::move(*option), options, grammar); !status) return status.error();
  }
  return options;
}

}  // namespace

std::vector<std::string_view> split_list(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find_first_of(separators, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<std::pair<std::string_view, std::string_view>> split_key_value(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<Bytes> size_in(std::string_view text) {
  constexpr double kMost = 1e18;  // bytes: more than any machine has, and whole numbers reach as far
  for (const auto& [unit, bytes] :
       {std::pair<std::string_view, double>("KiB", 0x1p10), {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}}) {
    if (!text.ends_with(unit)) continue;
    const auto number = number_in(text.substr(0, text.size() - unit.size()));
    if (!number || *number < 0 || *number * bytes > kMost) return std::nullopt;
    return Bytes(std::llround(*number * bytes));
  }
  return std::nullopt;
}

Result<KeyValue> parse_key_value(std::string_view text, const OptionGrammar& grammar) {
  const auto parts = split_key_value(text);
  if (!parts || parts->first.empty()) {
    return Error{fmt::format("'{}' is not KEY=VALUE", text), grammar.where, grammar.remedy};
  }
  if (parts->second.empty()) return Error{fmt::format("{} has no value", parts->first), grammar.where, grammar.remedy};
  return KeyValue(parts->first, parts->second);
}

Status add_once(KeyValue added, KeyValues& to, const OptionGrammar& grammar) {
  if (std::any_of(to.begin(), to.end(), [&](const KeyValue& other) { return other.first == added.first; })) {
    return Error{fmt::format("{} is given twice", added.first), grammar.where, "give it once"};
  }
  to.push_back(std::move(added));
  return {};
}

Result<KeyValues> parse_key_values(std::string_view text, const OptionGrammar& grammar, char separator) {
  return text.empty() ? KeyValues() : parse_parts(text, separator, within_text(grammar, text));
}

Result<NamedOptions> parse_named_options(std::string_view text, const OptionGrammar& grammar) {
  const size_t colon = text.find(':');
  const std::string name(text.substr(0, colon));
  if (colon == std::string_view::npos) return NamedOptions{name, {}};
  Result<KeyValues> options = parse_parts(text.substr(colon + 1), ',', within_text(grammar, text));
  if (!options) return options.error();
  return NamedOptions{name, std::move(*options)};
}

Error unknown_key(std::string_view key, const std::vector<std::string>& known, const OptionGrammar& grammar) {
  const std::string what = fmt::format("no option is called '{}'", key);
  if (known.empty()) return {what, grammar.where, "it takes none"};
  return {what, grammar.where, fmt::format("{} It takes {}", did_you_mean(key, known), fmt::join(known, ", "))};
}

const std::string* OptionReader::find(std::string_view key) {
  known_.emplace_back(key);
  for (size_t i = 0; i < options_.size(); ++i) {
    if (options_[i].first != key) continue;
    used_[i] = true;
    return &options_[i].second;
  }
  return nullptr;
}

double OptionReader::number(std::string_view key, double otherwise, double least, double most) {
  const std::string* text = find(key);
  if (text == nullptr) return otherwise;
  const auto value = number_in(*text);
  if (value && *value >= least && *value <= most) return *value;
  if (!value) {
    refuse(fmt::format("{} cannot be '{}', which is no number", key, *text));
  } else if (most >= kNoLimit) {
    refuse(fmt::format("{}={} is out of range: {} or more", key, *text, least));
  } else {
    refuse(fmt::format("{}={} is out of range: {} to {}", key, *text, least, most));
  }
  return otherwise;
}

int64_t OptionReader::whole(std::string_view key, int64_t otherwise, double least, double most) {
  const double value = number(key, static_cast<double>(otherwise), least, most);
  if (value != std::floor(value)) refuse(fmt::format("{}={} is no whole number", key, value));
  return static_cast<int64_t>(value);
}

size_t OptionReader::word(std::string_view key, size_t otherwise, const std::vector<std::string>& words) {
  const std::string* text = find(key);
  if (text == nullptr) return otherwise;
  const auto found = std::find(words.begin(), words.end(), *text);
  if (found != words.end()) return static_cast<size_t>(found - words.begin());
  faults_.push_back({fmt::format("{} cannot be '{}'", key, *text), grammar_.where, did_you_mean(*text, words)});
  return otherwise;
}

Status OptionReader::status() const {
  for (size_t i = 0; i < options_.size(); ++i) {
    if (!used_[i]) return unknown_key(options_[i].first, known_, grammar_);
  }
  return faults_.empty() ? Status() : Status(faults_.front());
}

}  // namespace forerun
