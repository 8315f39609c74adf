// Numbers and times as they stand in the cells of job tables; nothing where the text is none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cluster/job.h"

namespace forerun::cluster {

inline constexpr double kMostSeconds = 4e9;  // 127 years, so that differences of times fit
std::optional<double> parse_number(std::string_view text);
std::optional<int64_t> parse_integer(std::string_view text);  // "4" and "4.0"
// Seconds ("12.5") exactly to the nanosecond, of 127 years at most; "inf" is kNever.
std::optional<Time> parse_seconds(std::string_view text);
// "2017-10-09", "2017-10-09 07:01:55" or with 'T' between: since 1970-01-01, as if it were UTC.
std::optional<Time> parse_date(std::string_view text);

}  // namespace forerun::cluster
