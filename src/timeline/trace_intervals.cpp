#include "timeline/trace_intervals.h"

#include <algorithm>

namespace forerun {

Intervals united(Intervals intervals) {
  if (!std::is_sorted(intervals.begin(), intervals.end())) std::sort(intervals.begin(), intervals.end());
  size_t kept = 0;
  for (const Interval& next : intervals) {
    if (next.begin >= next.end) continue;
    if (kept > 0 && next.begin <= intervals[kept - 1].end) {
      intervals[kept - 1].end = std::max(intervals[kept - 1].end, next.end);
    } else {
      intervals[kept++] = next;
    }
  }
  intervals.resize(kept);
  return intervals;
}

Intervals intersection(const Intervals& a, const Intervals& b) {
  Intervals both;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Interval common{std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
    if (common.begin < common.end) both.push_back(common);
    (a[i].end < b[j].end ? i : j)++;
  }
  return both;
}

Intervals gaps_of(const Intervals& busy, int64_t from, int64_t until) {
  Intervals gaps;
  for (const Interval& interval : busy) {
    if (interval.end <= from) continue;
    if (interval.begin >= until) break;
    if (interval.begin > from) gaps.push_back({from, interval.begin});
    from = interval.end;
  }
  if (from < until) gaps.push_back({from, until});
  return gaps;
}

Nanoseconds length_of(const Intervals& intervals) {
  int64_t total = 0;
  for (const Interval& interval : intervals) total += interval.end - interval.begin;
  return Nanoseconds(total);
}

}  // namespace forerun
