#include "memory/allocator_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <vector>

namespace forerun {
namespace {

constexpr int kFirstPower = 20;  // roundup_power2_divisions begins at 1 MiB

int power_of(int64_t bytes) { return 63 - std::countl_zero(static_cast<uint64_t>(bytes)); }

size_t division_index(int64_t bytes) { return static_cast<size_t>(std::clamp(power_of(bytes) - kFirstPower, 0, 15)); }

// The next of `divisions` equal steps between the powers of two around `bytes`.
int64_t next_division(int64_t bytes, int64_t divisions) {
  const int64_t floor = int64_t{1} << power_of(bytes);
  const int64_t step = floor >> power_of(divisions);
  return step == 0 ? floor * 2 : round_up(bytes, step);
}

Error wrong(std::string_view name, std::string_view value, std::string_view expected) {
  return {fmt::format("{} cannot be '{}'", name, value), "allocator settings", fmt::format("give {}", expected)};
}

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc() && end == text.data() + text.size();
}

bool is_power_of_two(int64_t value) { return value > 0 && std::has_single_bit(static_cast<uint64_t>(value)); }

// Entries are separated by commas, but for those within brackets.
std::vector<std::string_view> split_entries(std::string_view text) {
  std::vector<std::string_view> entries;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    if (i > begin) entries.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return entries;
}

// "4", or "[256:2,1024:4,>:8]": up to each size in MiB (a power of two), and beyond the last.
Status parse_divisions(std::string_view value, std::array<int64_t, 16>& divisions) {
  const Error fault =
      wrong("roundup_power2_divisions", value, "a power of two, or a list like [256:2,>:4] of sizes in MiB");
  int64_t all = 0;
  if (parse_number(value, all)) {
    if (!is_power_of_two(all)) return fault;
    divisions.fill(all);
    return {};
  }
  if (value.size() < 2 || value.front() != '[' || value.back() != ']') return fault;
  size_t next = 0;
  for (const std::string_view entry : split_entries(value.substr(1, value.size() - 2))) {
    const size_t colon = entry.find(':');
    int64_t count = 0;
    if (colon == std::string_view::npos || !parse_number(entry.substr(colon + 1), count)) return fault;
    if (count != 0 && !is_power_of_two(count)) return fault;
    size_t last = divisions.size() - 1;
    if (entry.substr(0, colon) != ">") {
      int64_t mebibytes = 0;
      if (!parse_number(entry.substr(0, colon), mebibytes) || !is_power_of_two(mebibytes)) return fault;
      if (mebibytes > (int64_t{1} << 40)) return fault;
      last = division_index(mebibytes * kMebibyte);
    }
    for (; next <= last; ++next) divisions[next] = count;
  }
  for (; next > 0 && next < divisions.size(); ++next) divisions[next] = divisions[next - 1];
  return {};
}

Status parse_entry(std::string_view name, std::string_view value, AllocatorSettings& settings) {
  int64_t number = 0;
  if (name == "expandable_segments") {
    if (value != "True" && value != "False") return wrong(name, value, "True or False");
    settings.expandable_segments = value == "True";
  } else if (name == "max_split_size_mb") {
    if (!parse_number(value, number) || number <= kLargeSegment / kMebibyte || number > (int64_t{1} << 40)) {
      return wrong(name, value, "a whole number above 20");
    }
    settings.max_split_size = number * kMebibyte;
  } else if (name == "max_non_split_rounding_mb") {
    if (!parse_number(value, number) || number < kLargeSegment / kMebibyte || number > (int64_t{1} << 40)) {
      return wrong(name, value, "a whole number from 20");
    }
    settings.max_non_split_rounding = number * kMebibyte;
  } else if (name == "garbage_collection_threshold") {
    double share = 0;
    if (!parse_number(value, share) || !(share > 0 && share < 1)) return wrong(name, value, "a share between 0 and 1");
    settings.garbage_collection_threshold = share;
  } else if (name == "roundup_power2_divisions") {
    return parse_divisions(value, settings.roundup_power2_divisions);
  } else {
    return Error{fmt::format("there is no setting '{}'", name), "allocator settings",
                 "known are expandable_segments, max_split_size_mb, max_non_split_rounding_mb, "
                 "garbage_collection_threshold and roundup_power2_divisions"};
  }
  return {};
}

}  // namespace

Result<AllocatorSettings> parse_allocator_settings(std::string_view text) {
  AllocatorSettings settings;
  for (const std::string_view entry : split_entries(text)) {
    const size_t colon = entry.find(':');
    const std::string_view value = colon == std::string_view::npos ? "" : entry.substr(colon + 1);
    if (Status status = parse_entry(entry.substr(0, colon), value, settings); !status.ok()) return status.error();
  }
  return settings;
}

int64_t block_size(int64_t bytes, const AllocatorSettings& settings) {
  if (bytes < kMinBlock) return kMinBlock;
  const int64_t divisions = settings.roundup_power2_divisions[division_index(bytes)];
  if (divisions > 1 && bytes > kMinBlock * divisions) return next_division(bytes, divisions);
  return round_up(bytes, kMinBlock);
}

}  // namespace forerun
