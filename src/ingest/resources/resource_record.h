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

// Idle and burst durations in milliseconds; the amount in percent (gpu, memory) or megabytes a second.
struct BurstFigures {
  double idle_ms = 0;
  double burst_ms = 0;
  double amount = 0;
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
  double iteration_ms = 0;              // mean of worker 0
  MeasuredSteps steps;
};

struct ResourceRecord {
  RunRecord described;  // has_graph is false
  std::string id;
  std::string model;    // name in the plan, such as "resnet50-narrow"
  std::string setting;  // "P1w2-10G"
  std::string mode;     // sync, async, allreduce
  std::string tcp;      // congestion control of the links, "reno" or "default"; may be empty
  int64_t servers = 0;
  int64_t workers = 1;
  double bits_per_second = 0;  // of every node's link
  MeasuredResources measured;
};

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
