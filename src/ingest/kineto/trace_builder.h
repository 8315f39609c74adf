// TraceBuilder: events one by one -> a Trace. Knows what the categories of every era mean.
//
// 2021: "Operator", "Runtime", "Kernel", "Memcpy", "Memset"; since 2022: "cpu_op", "cuda_runtime", "cuda_driver",
// "kernel", "gpu_memcpy", "gpu_memset", "user_annotation", "cuda_sync", ...; AMD and Intel have names of their own.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ingest/kineto/raw_event.h"
#include "ingest/trace/trace.h"

namespace forerun {

class TraceBuilder {
 public:
  enum class Taken { as_it_is, repaired, skipped };

  // `reason()` says why an event was repaired or skipped.
  Taken add(const RawEvent& event);
  [[nodiscard]] std::string_view reason() const { return reason_; }

  // What another builder took in, as if it had come here event by event. False where there are more events than can be
  // numbered: then nothing was taken in.
  bool append(const TraceBuilder& block);

  [[nodiscard]] Trace& trace() { return trace_; }

  // Adds `base` to all times, names the lanes, sorts the rows. Nothing may be added afterwards.
  Trace finish(int64_t base);

 private:
  using IdKey = std::pair<int64_t, bool>;  // a number, and whether it was made of a text
  // A process or thread: its number, and the text that it was made of where the file has a text. A file may have the same number
  // for another one.
  struct NumberedId {
    int64_t number = 0;
    NameId text;
    [[nodiscard]] IdKey key() const { return {number, text.valid()}; }
  };
  using LaneKey = std::tuple<TraceLane::Kind, IdKey, IdKey>;
  struct HashLane {
    size_t operator()(const LaneKey& key) const;
  };
  struct ThreadName {
    NumberedId process, thread;
    NameId name;
  };

  NameId intern(std::string_view raw);
  NameId intern_or_none(std::string_view raw) { return raw.empty() ? NameId() : intern(raw); }
  NumberedId numbered(const RawId& id);
  EventKind kind_of(const RawEvent& event);
  LaneIndex lane_of(EventKind kind, const RawEvent& event);
  LaneIndex lane_of(TraceLane::Kind kind, const NumberedId& process, const NumberedId& thread);
  void name_thread(const ThreadName& thread);
  uint32_t detail_of(EventKind kind, const RawEvent& event);
  uint32_t op_detail(EventKind kind, const RawEvent& event);
  uint32_t entry_of(const OpDetail& detail);
  uint32_t entry_of(const KernelDetail& detail);
  uint32_t collective_of(const RawEvent& event);
  void take_metadata(const RawEvent& event);
  void push(EventKind kind, const RawEvent& event);

  Trace trace_;
  std::string_view reason_;
  bool repaired_ = false;
  std::unordered_map<LaneKey, LaneIndex, HashLane> lanes_;
  std::vector<std::pair<NumberedId, NumberedId>> lane_ids_;  // process and thread of each lane
  LaneKey last_key_;
  LaneIndex last_lane_ = kNoIndex;
  std::unordered_map<uint64_t, uint32_t> ops_, kernels_;  // by hash of the value: the entry of the side table
  std::map<std::pair<IdKey, IdKey>, ThreadName> thread_names_;
};

}  // namespace forerun
