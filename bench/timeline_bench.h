// How fast the timeline simulator is: a made-up replay of host ops, launches and kernels, simulated in one pass.
#pragma once

#include <fmt/format.h>

#include <chrono>

#include "timeline/simulator.h"

namespace forerun::bench {

// `launches` ops with a launch and a kernel each, kernels a little slower than the host; building is not counted.
inline bool time_replay(size_t launches) {
  TaskGraphBuilder builder;
  const LaneId host = builder.add_lane({});
  const LaneId stream = builder.add_lane({LaneKind::gpu_stream, 0, 7, true, "stream 7"});
  builder.reserve(3 * launches, launches);
  Task op, launch, kernel;
  op.lane = launch.lane = host;
  kernel.lane = stream;
  op.duration = Nanoseconds(4000);
  launch.duration = Nanoseconds(5000);
  launch.gap = Nanoseconds(1000);
  kernel.duration = Nanoseconds(11000);
  for (size_t i = 0; i < launches; ++i) {
    builder.add(op);
    const TaskId launched = builder.add(launch);
    builder.depend(builder.add(kernel), {launched, Anchor::start, Nanoseconds(4000)});
  }
  const auto graph = std::move(builder).build();
  if (!graph) return false;
  const auto begin = std::chrono::steady_clock::now();
  const Simulation simulation = simulate(*graph);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto expected = static_cast<int64_t>(8000 + 11000 * launches);
  if (simulation.end.value != expected) {
    fmt::print("replay: ends at {} ns instead of {}\n", simulation.end.value, expected);
    return false;
  }
  fmt::print("{:<34}{:>10.2f} s {:>15.1f} million tasks/s {:>6} tasks\n", "simulate a replay", seconds,
             static_cast<double>(graph->size()) / seconds * 1e-6, graph->size());
  return true;
}

}  // namespace forerun::bench
