#include "report/trace_chrome.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include "base/json_writer.h"
#include "base/line_writer.h"
#include "timeline/layers.h"

namespace forerun {
namespace {

constexpr size_t kMostTracks = 64;  // of one lane

// As the profiler names the kinds, so that what is written reads back as what it was.
std::string_view category_of(EventKind kind) {
  constexpr std::array<std::string_view, kEventKinds> kNames = {
      "cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "python_function",     "overhead",
      "kernel", "gpu_memcpy",      "gpu_memset",   "cuda_sync",   "gpu_user_annotation", "other"};
  return kNames[static_cast<size_t>(kind)];
}

// Whole nanoseconds as microseconds.
std::string us(int64_t time) {
  return fmt::format("{}{}.{:03}", time < 0 ? "-" : "", std::abs(time) / 1000, std::abs(time) % 1000);
}

// One track: the ends of the slices that are open, innermost last.
struct Track {
  std::vector<int64_t> open;
  int64_t id = 0;

  bool take(int64_t start, int64_t end) {
    while (!open.empty() && open.back() <= start) open.pop_back();
    if (!open.empty() && open.back() < end) return false;
    open.push_back(end);
    return true;
  }
};

class ChromeWriter {
 public:
  explicit ChromeWriter(LineWriter& out) : out_(out) {}

  [[nodiscard]] bool good() const { return status_.ok(); }
  [[nodiscard]] const Status& status() const { return status_; }
  ChromeCounts counts;

  void event(const std::string& json) {
    if (!status_.ok()) return;
    status_ = out_.write((first_ ? " " : ",") + json);
    first_ = false;
  }

  int64_t process(const std::string& name) {
    const int64_t id = next_process_++;
    event(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", id, json_quoted(name)));
    event(fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})", id, id));
    return id;
  }

  // A lane's tracks: slices come in order of start.
  struct LaneTracks {
    int64_t process = 0;
    std::string name;
    std::vector<Track> tracks;
  };

  // The track of a slice; nothing where all are taken.
  std::optional<int64_t> track(LaneTracks& lane, int64_t start, int64_t end) {
    for (Track& track : lane.tracks) {
      if (track.take(start, end)) return track.id;
    }
    if (lane.tracks.size() >= kMostTracks) {
      ++counts.left_out;
      return std::nullopt;
    }
    Track& added = lane.tracks.emplace_back();
    added.id = next_track_++;
    (void)added.take(start, end);
    ++counts.tracks;
    const std::string name =
        lane.tracks.size() == 1 ? lane.name : fmt::format("{} ({})", lane.name, lane.tracks.size());
    event(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", lane.process,
                      added.id, json_quoted(name)));
    event(fmt::format(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
                      lane.process, added.id, added.id));
    return added.id;
  }

  std::optional<int64_t> slice(LaneTracks& lane, const std::string& quoted_name, std::string_view category,
                               int64_t start, int64_t end, const std::string& arguments) {
    const auto id = track(lane, start, end);
    if (!id) return id;
    ++counts.slices;
    event(fmt::format(R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})", category,
                      quoted_name, lane.process, *id, us(start), us(end - start), arguments));
    return id;
  }

  void arrow(char phase, int64_t id, int64_t process, int64_t track, int64_t time) {
    counts.arrows += phase == 's' ? 1 : 0;
    event(fmt::format(R"({{"ph":"{}","cat":"launch","name":"launch","id":{},"pid":{},"tid":{},"ts":{}{}}})", phase, id,
                      process, track, us(time), phase == 'f' ? R"(,"bp":"e")" : ""));
  }

  void counter(int64_t process, const std::string& name, int64_t time, int64_t value) {
    event(fmt::format(R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{"queued":{}}}}})", json_quoted(name), process,
                      us(time), value));
  }

 private:
  LineWriter& out_;
  Status status_;
  bool first_ = true;
  int64_t next_process_ = 1, next_track_ = 1;
};

class RankWriter {
 public:
  RankWriter(ChromeWriter& out, const Trace& trace, const BreakdownOptions& options, int64_t shift, std::string label)
      : out_(out),
        trace_(trace),
        options_(options),
        shift_(shift),
        label_(std::move(label)),
        links_(link_events(trace)),
        critical_(trace.size(), false),
        places_(trace.size()) {}

  void write(const std::vector<EventIndex>& critical, int64_t first_arrow) {
    for (const EventIndex i : critical) critical_[i] = true;
    write_marks(critical);
    write_events();
    write_arrows(first_arrow);
  }

 private:
  [[nodiscard]] int64_t at(int64_t time) const { return time - shift_; }

  void write_marks(const std::vector<EventIndex>& critical) {
    const int64_t process = out_.process(label_ + "annotations");
    ChromeWriter::LaneTracks steps{process, "iterations", {}};
    const Iterations iterations = find_iterations(trace_, links_);
    for (size_t i = 0; i < iterations.count(); ++i) {
      out_.slice(steps, json_quoted(fmt::format("iteration {}", i)), "iteration", at(iterations.boundaries[i]),
                 at(iterations.boundaries[i + 1]), "");
    }
    ChromeWriter::LaneTracks path{process, "critical path", {}};
    std::vector<EventIndex> sorted = critical;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    for (const EventIndex i : sorted) {
      out_.slice(path, json_quoted(trace_.name(i)), "critical_path", at(trace_.events.start[i]),
                 at(trace_.events.end(i)), fmt::format(R"("kind":"{}")", name_of(trace_.events.kind[i])));
    }
    std::map<int64_t, std::vector<EventIndex>> by_device;
    std::map<LaneIndex, std::vector<EventIndex>> by_lane;
    for (const EventIndex i : kept_work(trace_, links_, iterations, {})) {
      by_device[trace_.lane_of(i).process].push_back(i);
      by_lane[trace_.events.lane[i]].push_back(i);
    }
    for (const auto& [device, work] : by_device) {
      ChromeWriter::LaneTracks idle{process, fmt::format("GPU {} idle", device), {}};
      for (const IdlePause& pause : pauses_of(trace_, links_, work, options_)) {
        out_.slice(idle, json_quoted("idle: " + std::string(name_of(pause.cause))), "idle", at(pause.when.begin),
                   at(pause.when.end), fmt::format(R"("before":{})", json_quoted(trace_.name(pause.ended_by))));
      }
    }
    for (const auto& [lane, work] : by_lane) {
      const std::string name =
          fmt::format("queue of stream {} on GPU {}", trace_.lanes[lane].thread, trace_.lanes[lane].process);
      for (const QueuePoint& point : queue_of(trace_, links_, work)) {
        out_.counter(process, name, at(point.time), point.length);
      }
    }
  }

  // One process per process or device of the file, one lane per thread or stream.
  std::vector<ChromeWriter::LaneTracks> lanes() {
    std::map<std::pair<bool, int64_t>, int64_t> processes;
    std::vector<ChromeWriter::LaneTracks> tracks;
    for (const TraceLane& lane : trace_.lanes) {
      const bool gpu = lane.kind != TraceLane::Kind::host_thread && lane.kind != TraceLane::Kind::other;
      const auto [found, added] = processes.try_emplace({gpu, lane.process}, 0);
      if (added) found->second = out_.process(fmt::format("{}{} {}", label_, gpu ? "GPU" : "process", lane.process));
      const char* kind = lane.kind == TraceLane::Kind::gpu_stream       ? "stream"
                         : lane.kind == TraceLane::Kind::gpu_sync       ? "syncs of stream"
                         : lane.kind == TraceLane::Kind::gpu_annotation ? "annotations of stream"
                                                                        : "thread";
      tracks.push_back({found->second, fmt::format("{} {}", kind, lane.thread), {}});
    }
    return tracks;
  }

  void write_events() {
    std::vector<std::string> names(trace_.names.size());
    std::vector<ChromeWriter::LaneTracks> tracks = lanes();
    const TraceEvents& events = trace_.events;
    for (EventIndex i = 0; i < trace_.size() && out_.good(); ++i) {
      std::string& name = names[events.name[i].value];
      if (name.empty()) name = json_quoted(trace_.name(i));
      std::string arguments = critical_[i] ? R"("critical":1)" : "";
      const auto add = [&](const char* key, const std::string& value) {
        arguments += fmt::format("{}\"{}\":{}", arguments.empty() ? "" : ",", key, value);
      };
      if (events.correlation[i] > 0) add("correlation", std::to_string(events.correlation[i]));
      if (is_device_work(events.kind[i]) || events.kind[i] == EventKind::sync) {
        add("device", std::to_string(trace_.lane_of(i).process));
        add("stream", std::to_string(trace_.lane_of(i).thread));
      }
      if (events.bytes[i] >= 0) add("bytes", std::to_string(events.bytes[i]));
      if (is_device_work(events.kind[i]) && links_.op[i] != kNoIndex) add("op", json_quoted(trace_.name(links_.op[i])));
      const auto track = out_.slice(tracks[events.lane[i]], name, category_of(events.kind[i]), at(events.start[i]),
                                    at(events.end(i)), arguments);
      places_[i] = track ? std::pair(tracks[events.lane[i]].process, *track) : std::pair<int64_t, int64_t>(0, 0);
    }
  }

  void write_arrows(int64_t first) {
    for (EventIndex i = 0; i < trace_.size() && out_.good(); ++i) {
      const EventIndex call = links_.launch[i];
      if (call == kNoIndex || !is_device_work(trace_.events.kind[i])) continue;
      if (places_[i].second == 0 || places_[call].second == 0 || trace_.events.start[call] > trace_.events.start[i])
        continue;
      out_.arrow('s', first + i, places_[call].first, places_[call].second, at(trace_.events.start[call]));
      out_.arrow('f', first + i, places_[i].first, places_[i].second, at(trace_.events.start[i]));
    }
  }

  ChromeWriter& out_;
  const Trace& trace_;
  const BreakdownOptions& options_;
  int64_t shift_;
  std::string label_;
  TraceLinks links_;
  std::vector<bool> critical_;
  std::vector<std::pair<int64_t, int64_t>> places_;  // process and track of a slice; track 0: left out
};

}  // namespace

Result<ChromeCounts> write_chrome_trace(std::span<const Trace> ranks, const TraceAnalysis& analysis,
                                        const BreakdownOptions& options, const std::string& path) {
  auto out = LineWriter::create(path, {.overwrite = true, .zstd_level = 3});
  if (!out) return out.error();
  if (Status status = out->write(R"({"displayTimeUnit":"ns","traceEvents":[)"); !status) return status.error();
  ChromeWriter writer(*out);
  const auto offset = [&](size_t rank) { return analysis.comparison.ranks[rank].clock_offset.value; };
  int64_t first = INT64_MAX;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].size() > 0) first = std::min(first, ranks[r].events.start.front() - offset(r));
  }
  int64_t arrows = 1;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const std::string label =
        ranks.size() == 1 ? "" : fmt::format("rank {} ", ranks[r].rank < 0 ? static_cast<int64_t>(r) : ranks[r].rank);
    RankWriter rank(writer, ranks[r], options, first + offset(r), label);
    rank.write(analysis.path ? analysis.path->events[r] : std::vector<EventIndex>(), arrows);
    arrows += static_cast<int64_t>(ranks[r].size());
  }
  if (!writer.good()) return writer.status().error();
  if (Status status = out->write("]}"); !status) return status.error();
  if (Status status = out->finish(); !status) return status.error();
  return writer.counts;
}

}  // namespace forerun
