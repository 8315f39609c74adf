// Reads `resources/1` records (docs/records.md): what distributed training of a zoo model did to the GPU and the network
// in one setting, as `forerun.testbed` measures it.
//
// A record's model comes as a training run without ops, for the zoo to build; what was measured stands apart from what a
// predictor may see. Series are not kept.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ingest/capture/run_record.h"

namespace forerun {

inline constexpr std::array<const char*, 4> kMeasuredResources = {"gpu", "memory", "send", "receive"};

// Where the times of GPU and memory bursts come from: the workers' clocks, by which both have the same, or what kernels did.
enum class GpuTimes : uint8_t { clocks, kernels };

// I, BIB and B (monitor/series.h); unknown: the record does not say.
enum class BurstPattern : uint8_t { unknown, idle, alternating, burst };

// Idle and burst durations in milliseconds; the amount in percent (gpu, memory) or megabytes a second.
struct BurstFigures {
  double idle_ms = 0;
  double burst_ms = 0;
  double amount = 0;
  BurstPattern pattern = BurstPattern::unknown;
  bool operator==(const BurstFigures&) const = default;
};

// Mean milliseconds of the steps of an iteration, and percent of the GPU and of its memory in use while a worker
// computes; -1 where a record does not say.
struct MeasuredSteps {
  double compute = -1, to_host = -1, exchange = -1, to_device = -1, server_update = -1;
  double gpu_level = -1, memory_level = -1;
};

struct MeasuredResources {
  std::array<BurstFigures, 4> metrics;  // by kMeasuredResources
  GpuTimes gpu_times = GpuTimes::clocks;
  std::array<BurstFigures, 2>
      by_clocks;             // gpu and memory with the times of the workers' clocks, whatever `metrics` have
  double iteration_ms = 0;   // mean of worker 0
  double computing_ms = -1;  // of an iteration, in which any worker computes; -1: the record does not say
  MeasuredSteps steps;
};

// How answers of a server shared its link: evenly, or with more for worker 0 or for the last worker. `one`: always in the
// same way in that setting, as far as is known.
enum class LinksSeen : uint8_t { one, even, first, last };

struct ResourceRecord {
  RunRecord described;  // has_graph is false
  std::string id;
  std::string model;    // name in the plan, such as "resnet50-narrow"
  std::string setting;  // "P1w2-10G"
  std::string mode;     // sync, async, allreduce
  std::string host;     // the machine; may be empty
  std::string tcp;      // congestion control of the links, "reno" or "default"; may be empty
  int64_t servers = 0;
  int64_t workers = 1;
  double bits_per_second = 0;        // of every node's link
  int64_t repeat = 0;                // how often this workload had been measured before
  double parameters = 0;             // that are exchanged; 0: the record does not say
  LinksSeen links = LinksSeen::one;  // which its session tells (link_state.h), no record by itself
  MeasuredResources measured;
};

// The setting as tables name it, which is known before a run: "P1w2-10G", "P1w2-10G-default" (another congestion control).
std::string table_setting(const ResourceRecord& record);
// With how its links came to be shared, which shows afterwards alone, where that differs from run to run: "P1w2-10G-even",
// "P1w2-10G-first", "P1w2-10G-last".
std::string divided_setting(const ResourceRecord& record);

class ResourceReader {
 public:
  // One line; the Error says what is wrong, and not where.
  Result<ResourceRecord> decode(std::string_view line);
  // Every record of a file whose status is ok. A broken one goes to `bad_record` and the rest goes on; lines of other
  // schemas and runs that failed are passed over.
  Status read(const std::string& path, const std::function<void(ResourceRecord&&)>& record,
              const std::function<void(const Error&)>& bad_record);

 private:
  RunDecoder decoder_;
};

}  // namespace forerun
