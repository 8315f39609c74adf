// Trace: what a profiler recorded of one process (one rank), as columns.
//
// One row per event that lasts (Chrome trace phase "X"): ops, annotations, CUDA or HIP calls on host threads; kernels,
// copies and fills on GPU streams. Rows stand in order of start (the longer first, then the order in the file), so an
// event comes after those it is nested in. Times are whole nanoseconds, names are interned, ids are as in the file.
// What few events have (shapes, grids, collectives, waits) stands in side tables, each distinct value once.
// Left out: flow arrows (launches are joined by correlation), counters, and the allocator's instant events.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/interner.h"
#include "base/quantity.h"
#include "ingest/trace/compact_column.h"

namespace forerun {

using EventIndex = uint32_t;  // a row of TraceEvents
using LaneIndex = uint32_t;   // an entry of Trace::lanes
constexpr uint32_t kNoIndex = std::numeric_limits<uint32_t>::max();
constexpr int64_t kNoNumber = -1;  // of correlation, external id and sequence number: the event has none

enum class EventKind : uint8_t {
  op,          // a framework op: aten::add, autograd::engine::evaluate_function: ...
  annotation,  // a user's or the framework's mark on the host: ProfilerStep#3, Optimizer.step#SGD.step, nccl:all_reduce
  runtime,     // a CUDA or HIP runtime call: cudaLaunchKernel
  driver,      // a driver call: cuLaunchKernel
  python,      // a Python function, or a module's forward ("nn.Module: Linear_0")
  overhead,    // the profiler's own time on the host
  kernel,      // on a GPU stream
  copy,        // memcpy on a GPU stream
  fill,        // memset on a GPU stream
  sync,        // a wait as the GPU's tracer tells it (detail: TraceSync)
  gpu_annotation,  // a host annotation projected on a stream
  other,
};
constexpr size_t kEventKinds = static_cast<size_t>(EventKind::other) + 1;
std::string_view name_of(EventKind kind);

constexpr bool is_device_work(EventKind kind) {
  return kind == EventKind::kernel || kind == EventKind::copy || kind == EventKind::fill;
}
constexpr bool is_cuda_call(EventKind kind) { return kind == EventKind::runtime || kind == EventKind::driver; }
constexpr bool is_host(EventKind kind) { return kind <= EventKind::overhead; }

// Where events stand one after the other (host threads: nested). Streams hold device work alone: projected annotations
// and waits have lanes of their own.
struct TraceLane {
  enum class Kind : uint8_t { host_thread, gpu_stream, gpu_sync, gpu_annotation, other };
  Kind kind = Kind::other;
  int64_t process = 0;  // host: process id; GPU: device
  int64_t thread = 0;   // host: thread id; GPU: stream
  NameId name;          // thread_name of the file, where it has one
  bool operator==(const TraceLane&) const = default;
};

// What an op was called with: raw JSON of the file ("[[64,3,224,224],[],[]]"); not valid where the file has none.
struct OpDetail {
  NameId dims, types, strides, values;  // "Input Dims", "Input type", "Input Strides", "Concrete Inputs"
  NameId module;                        // "Module Hierarchy", or the module class of a Python event
  NameId stack;                         // "Call stack"
  auto operator<=>(const OpDetail&) const = default;
};

struct KernelDetail {
  std::array<uint32_t, 3> grid{}, block{};
  uint32_t registers = 0;      // per thread
  uint32_t shared_memory = 0;  // bytes per block
  auto operator<=>(const KernelDetail&) const = default;
};

// A wait that the GPU's tracer recorded: "Context Sync", "Stream Sync", "Event Sync", "Stream Wait Event".
struct TraceSync {
  NameId kind;
  int64_t stream = -1;              // that waits; -1: the host
  int64_t wait_on_stream = -1;      // the stream of the awaited event record
  int64_t record_correlation = -1;  // of the call that recorded the awaited event
  int64_t event = -1;
  auto operator<=>(const TraceSync&) const = default;
};

// What the process-group library said of one collective; on the op that asked for it, and in newer files on its kernel.
struct TraceCollective {
  NameId name, dtype;            // "allreduce", "Float"
  NameId group, description;     // "0", "default_pg"
  NameId ranks;                  // raw text: "[0, 1]"
  NameId in_splits, out_splits;  // raw text of all-to-all splits
  int64_t in_elements = -1, out_elements = -1;
  int64_t group_size = -1, rank_start = -1, rank_stride = -1;
  auto operator<=>(const TraceCollective&) const = default;
  // Bytes of the larger side of the message; -1 where the file does not tell.
  [[nodiscard]] int64_t bytes(const StringTable& names) const;
};

// The columns; all of one length.
// One event, as it goes into the columns below.
struct TraceEvent {
  int64_t start = 0;
  int64_t duration = 0;
  NameId name;
  EventKind kind = EventKind::op;
  LaneIndex lane = 0;
  int64_t correlation = kNoNumber;
  int64_t external_id = kNoNumber;
  int64_t sequence = kNoNumber;
  int64_t bytes = -1;
  int32_t forward_thread = -1;
  uint32_t detail = kNoIndex;
  uint32_t collective = kNoIndex;
};

struct TraceEvents {
  std::vector<int64_t> start;     // nanoseconds, on the clock of the file
  std::vector<int64_t> duration;  // nanoseconds, never negative; start + duration never overflows
  CompactColumn<NameId> name;
  std::vector<EventKind> kind;
  CompactColumn<LaneIndex> lane;
  CompactColumn<int64_t> correlation;  // shared by a CUDA call and the device work it launched
  CompactColumn<int64_t> external_id;  // of an op; device work and CUDA calls repeat that of the op they belong to
  CompactColumn<int64_t> sequence;     // shared by a forward op and the backward ops of its autograd node
  CompactColumn<int64_t> bytes;        // of a copy or fill; -1 elsewhere
  CompactColumn<int32_t>
      forward_thread;              // ops: "Fwd thread id", > 0 in the backward pass; else -1. Python: id of the event
  CompactColumn<uint32_t> detail;  // op, annotation, python: Trace::ops; kernel: Trace::kernels; sync: Trace::syncs
  CompactColumn<uint32_t> collective;  // Trace::collectives, or kNoIndex

  EventIndex add(const TraceEvent& event);
  // The columns of other rows behind these that refer to no table: all but name, lane, detail and collective.
  void append_numbers(const TraceEvents& rows);
  [[nodiscard]] size_t size() const { return start.size(); }
  [[nodiscard]] int64_t end(EventIndex i) const { return start[i] + duration[i]; }
  [[nodiscard]] size_t memory() const;  // bytes held
  bool operator==(const TraceEvents&) const = default;
};

// What became of the events of the file.
struct TraceCounts {
  int64_t read = 0;           // events of any phase that were understood, repaired ones too
  int64_t kept = 0;           // rows of the trace
  int64_t repaired = 0;       // broken strings mended, negative or missing durations and the like set right
  int64_t skipped = 0;        // events that could not be understood
  bool truncated = false;     // the file ends within its events
  std::string first_problem;  // of the first event repaired or skipped: what and where
  int64_t json_bytes = 0;
  bool operator==(const TraceCounts&) const = default;
};

struct Trace {
  std::string file;
  std::string gpu;      // name of the first device; empty where the file has none
  std::string backend;  // of torch.distributed: "nccl"; empty
  int64_t rank = -1;    // -1: not told
  int64_t world_size = -1;
  int64_t time_base = 0;     // nanoseconds that were added to the times of the file (baseTimeNanoseconds)
  int64_t device_shift = 0;  // nanoseconds that were added to a device's times, the most of them (device_clock.h)
  bool names_process_group = false;  // the file says that the run is distributed (world size above 1, or unknown)

  StringTable names;
  std::vector<TraceLane> lanes;
  TraceEvents events;
  std::vector<OpDetail> ops;
  std::vector<KernelDetail> kernels;
  std::vector<TraceSync> syncs;
  std::vector<TraceCollective> collectives;
  TraceCounts counts;

  [[nodiscard]] size_t size() const { return events.size(); }
  [[nodiscard]] const std::string& name(EventIndex i) const { return names[events.name[i]]; }
  [[nodiscard]] const TraceLane& lane_of(EventIndex i) const { return lanes[events.lane[i]]; }
  [[nodiscard]] std::string text(NameId id) const { return id.valid() ? names[id] : std::string(); }
  [[nodiscard]] size_t memory() const;  // bytes held by columns, names and side tables, about
};

// Sorts the rows by (start, longer first, order in the file). Readers call it once; analyses rely on it.
void sort_events(TraceEvents& events);

}  // namespace forerun
