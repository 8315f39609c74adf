// Measurement: what was measured when a run was recorded. Predictors never read it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quantity.h"

namespace forerun {

// `oom`: it did not fit in memory; `failed`: it could not be measured for another reason.
enum class RunStatus : uint8_t { ok, oom, failed };
std::string_view name_of(RunStatus status);
std::optional<RunStatus> run_status_named(std::string_view name);

// What was asked for when memory ran out.
struct MemoryTried {
  std::string phase;
  Bytes requested, reserved, allocated;
};

// Ops are numbered as in the graph.
struct Measurement {
  RunStatus status = RunStatus::ok;
  bool out_of_memory = false;  // status is oom
  std::string error;           // of a run that failed
  std::optional<MemoryTried> tried;

  double pipelined_median_ms = 0;  // time of an iteration, back to back
  double synced_median_ms = 0;     // each followed by a synchronization
  double gpu_busy_us = 0;          // sum of all kernels of one profiled iteration
  double unmatched_us = 0;         // of that, kernels that no op is known for
  int64_t kernel_count = 0;
  std::vector<double> op_gpu_us;  // by op
  std::vector<uint32_t> op_kernels;
  std::vector<double> op_span_us;  // by op: while any of its kernels ran, maybe side by side; Fields::everything
  std::vector<double> op_gap_us;   // by op: how long the GPU idled behind its kernels when profiled; Fields::everything
  std::array<double, 3> host_us = {};  // by Phase, in the profiled iteration
  bool aligned = true;                 // false: kernels were matched to ops by name

  // After three iterations from an empty allocator.
  Bytes peak_allocated, peak_reserved, peak_active, peak_requested, allocated;
  Bytes device_used, device_total;  // of the whole GPU; 0 where not recorded
  int64_t segments = 0;
  int64_t retries = 0;
  Bytes initial;         // allocated once the model was built
  Bytes base_allocated;  // before
};

}  // namespace forerun
