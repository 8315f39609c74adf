// Sets of moments as sorted, disjoint intervals: unions, intersections, lengths.
#pragma once

#include <cstdint>
#include <vector>

#include "base/quantity.h"

namespace forerun {

struct Interval {
  int64_t begin = 0, end = 0;  // nanoseconds, end not included
  auto operator<=>(const Interval&) const = default;
};
using Intervals = std::vector<Interval>;  // sorted and disjoint where a function gives them

// The moments in any of them. Empty intervals vanish; those that touch become one.
Intervals united(Intervals intervals);
// The moments in both; both sorted and disjoint.
Intervals intersection(const Intervals& a, const Intervals& b);
// The moments of `from` to `until` in none of `busy`, which is sorted and disjoint.
Intervals gaps_of(const Intervals& busy, int64_t from, int64_t until);
Nanoseconds length_of(const Intervals& intervals);

}  // namespace forerun
