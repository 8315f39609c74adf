#include "report/trace_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "report/columns.h"

namespace forerun {
namespace {

std::string_view lane_kind(TraceLane::Kind kind) {
  switch (kind) {
    case TraceLane::Kind::host_thread: return "host thread";
    case TraceLane::Kind::gpu_stream: return "GPU stream";
    case TraceLane::Kind::gpu_sync: return "GPU waits";
    case TraceLane::Kind::gpu_annotation: return "GPU annotations";
    default: return "other";
  }
}

// In the order that one reads them.
int place_of(TraceLane::Kind kind) {
  switch (kind) {
    case TraceLane::Kind::gpu_stream: return 0;
    case TraceLane::Kind::host_thread: return 1;
    case TraceLane::Kind::gpu_sync: return 2;
    case TraceLane::Kind::gpu_annotation: return 3;
    default: return 4;
  }
}

// Times of a hostile file may lie further apart than an int64_t goes.
int64_t since(int64_t begin, int64_t time) {
  int64_t distance = 0;
  return __builtin_sub_overflow(time, begin, &distance) ? std::numeric_limits<int64_t>::max() : distance;
}

void write_lane(JsonWriter& json, const Trace& trace, const TimelineLane& row) {
  const TraceLane& lane = trace.lanes[row.lane];
  json.begin_object()
      .field("lane", row.lane)
      .field("kind", lane_kind(lane.kind))
      .field("process", lane.process)
      .field("thread", lane.thread)
      .field("name", trace.text(lane.name))
      .field("depth", row.depth);
  column(json, "start", row.pieces, [](const TimelinePiece& piece) { return piece.start; });
  column(json, "end", row.pieces, [](const TimelinePiece& piece) { return piece.end; });
  column(json, "events", row.pieces, [](const TimelinePiece& piece) { return piece.events; });
  column(json, "name_of", row.pieces,
         [&](const TimelinePiece& piece) { return trace.events.name[piece.longest].value; });
  column(json, "kind_of", row.pieces,
         [&](const TimelinePiece& piece) { return name_of(trace.events.kind[piece.longest]); });
  json.end_object();
}

}  // namespace

TimelineRows::TimelineRows(const Trace& trace, uint32_t deepest) {
  const TraceEvents& events = trace.events;
  if (events.size() == 0) return;
  begin_ = events.start[0];
  std::vector<std::vector<int64_t>> open(trace.lanes.size());  // ends of what an event is nested in
  std::map<std::pair<LaneIndex, uint32_t>, size_t> known;
  for (EventIndex i = 0; i < events.size(); ++i) {
    length_ = std::max(length_, since(begin_, events.end(i)));
    auto& ends = open[events.lane[i]];
    while (!ends.empty() && ends.back() <= events.start[i]) ends.pop_back();
    const auto depth = static_cast<uint32_t>(ends.size());
    ends.push_back(events.end(i));
    if (depth >= deepest) continue;
    const auto [place, fresh] = known.try_emplace({events.lane[i], depth}, rows_.size());
    if (fresh) rows_.push_back({events.lane[i], depth, {}});
    rows_[place->second].events.push_back(i);
  }
  const auto order = [&](const Row& row) {
    return std::tuple(place_of(trace.lanes[row.lane].kind), row.lane, row.depth);
  };
  std::sort(rows_.begin(), rows_.end(), [&](const Row& a, const Row& b) { return order(a) < order(b); });
}

std::vector<TimelineLane> TimelineRows::lanes(const Trace& trace, const TimelineStretch& stretch) const {
  const TraceEvents& events = trace.events;
  const auto start_of = [&](EventIndex i) { return since(begin_, events.start[i]); };
  const auto end_of = [&](EventIndex i) { return since(begin_, events.end(i)); };
  const double per_pixel =
      static_cast<double>(stretch.to - stretch.from) / static_cast<double>(std::max<int64_t>(stretch.px, 1));
  std::vector<TimelineLane> lanes;
  for (const Row& row : rows_) {
    TimelineLane lane{row.lane, row.depth, {}};
    int64_t last_pixel = -1;
    auto at = std::partition_point(row.events.begin(), row.events.end(),
                                   [&](EventIndex i) { return start_of(i) < stretch.from; });
    while (at != row.events.begin() && end_of(*(at - 1)) > stretch.from) --at;
    for (; at != row.events.end() && start_of(*at) <= stretch.to; ++at) {
      const double place = static_cast<double>(std::max(start_of(*at), stretch.from) - stretch.from);
      const auto pixel = per_pixel > 0 ? static_cast<int64_t>(place / per_pixel) : 0;
      if (lane.pieces.empty() || pixel != last_pixel) {
        lane.pieces.push_back({start_of(*at), end_of(*at), 1, *at});
      } else {
        TimelinePiece& piece = lane.pieces.back();
        piece.end = std::max(piece.end, end_of(*at));
        ++piece.events;
        if (events.duration[*at] > events.duration[piece.longest]) piece.longest = *at;
      }
      last_pixel = pixel;
    }
    if (!lane.pieces.empty()) lanes.push_back(std::move(lane));
  }
  return lanes;
}

std::string timeline_json(const Trace& trace, const TimelineRows& rows, const TimelineStretch& stretch) {
  const std::vector<TimelineLane> lanes = rows.lanes(trace, stretch);
  std::map<uint32_t, const std::string*> used;
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.timeline/1")
      .field("from", stretch.from)
      .field("to", stretch.to)
      .field("length_ns", rows.length())
      .field("events", trace.size())
      .key("lanes")
      .begin_array();
  for (const TimelineLane& lane : lanes) {
    write_lane(json, trace, lane);
    for (const TimelinePiece& piece : lane.pieces) {
      const NameId name = trace.events.name[piece.longest];
      used[static_cast<uint32_t>(name.value)] = &trace.names[name];
    }
  }
  json.end_array().key("names").begin_object();
  for (const auto& [number, name] : used) json.field(fmt::format("{}", number), *name);
  return json.end_object().end_object().take();
}

}  // namespace forerun
