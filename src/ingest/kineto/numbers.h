// Numbers of a trace as exact integers: ids, and times in microseconds to whole nanoseconds. A double would lose
// nanoseconds of a time since 1970.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace forerun {

constexpr int64_t kLongestTime = int64_t{3'000'000'000'000'000'000};  // ns; three of them add up without overflow

// "1712195495519689.253" or "1.5e3" (microseconds) to nanoseconds, half rounded up; nothing where it is no number or is
// beyond kLongestTime. A number in quotes counts.
std::optional<int64_t> nanoseconds_of(std::string_view token);

// A whole number; decimals are cut off. A number in quotes counts. Nothing where it is no number or too large.
std::optional<int64_t> integer_of(std::string_view token);

}  // namespace forerun
