// How fast the timeline simulator is: a made-up replay of host ops, launches and kernels, simulated in one pass; an exchange of
// gradients beside backward passes; and the passes of a pipeline.
#pragma once

#include <fmt/format.h>

#include <chrono>

#include "scale/pipeline.h"
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

// Messages of `layers` layers beside `steps` backward passes, on a network lane that goes by priority: the events of an exchange, where
// the simulator has to choose among what is ready. Building is not counted.
inline bool time_exchange(size_t steps, size_t layers) {
  TaskGraphBuilder builder;
  const LaneId stream = builder.add_lane({LaneKind::gpu_stream, 0, 7, true, "stream 7"});
  const LaneId network = builder.add_lane({LaneKind::network_link, 0, 0, false, "network"});
  Task kernel, message;
  kernel.lane = stream;
  message.lane = network;
  message.kind = TaskKind::communication;
  kernel.duration = Nanoseconds(11000);
  message.duration = Nanoseconds(9000);
  builder.reserve(2 * steps * layers, 2 * steps * layers);
  std::vector<TaskId> arrived(layers);
  for (size_t step = 0; step < steps; ++step) {
    for (size_t layer = 0; layer < layers; ++layer) {
      const TaskId ready = builder.add(kernel);
      if (arrived[layer].valid()) builder.depend(ready, {arrived[layer], Anchor::end, Nanoseconds(0)});
      message.priority = static_cast<int32_t>(layer);
      arrived[layer] = builder.add(message);
      builder.depend(arrived[layer], {ready, Anchor::end, Nanoseconds(0)});
    }
  }
  const auto graph = std::move(builder).build();
  if (!graph) return false;
  const auto begin = std::chrono::steady_clock::now();
  const Simulation simulation = simulate(*graph);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto expected = static_cast<int64_t>(11000 * steps * layers + 9000);
  if (simulation.end.value != expected) {
    fmt::print("exchange: ends at {} ns instead of {}\n", simulation.end.value, expected);
    return false;
  }
  fmt::print("{:<34}{:>10.2f} s {:>15.1f} million tasks/s {:>6} tasks\n", "simulate an exchange", seconds,
             static_cast<double>(graph->size()) / seconds * 1e-6, graph->size());
  return true;
}

// Every pass of every micro-batch of an interleaved pipeline.
inline bool time_pipeline(int64_t devices, int64_t chunks, int64_t micro_batches) {
  const std::vector<scale::StageTimes> stages(static_cast<size_t>(devices * chunks),
                                              {Nanoseconds(1'000'000), Nanoseconds(2'000'000), Nanoseconds()});
  const auto begin = std::chrono::steady_clock::now();
  const scale::PipelineRun run =
      scale::run_pipeline(stages, {devices, chunks, micro_batches, false}, Nanoseconds(10'000));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const int64_t passes = 2 * devices * chunks * micro_batches;
  const Nanoseconds busy = Nanoseconds(3'000'000) * (chunks * micro_batches);
  if (run.device_end.front() < busy) {
    fmt::print("pipeline: a stage ends after {} ns of {}\n", run.device_end.front().value, busy.value);
    return false;
  }
  fmt::print("{:<34}{:>10.3f} s {:>14.1f} million passes/s {:>6} passes\n", "play a pipeline", seconds,
             static_cast<double>(passes) / seconds * 1e-6, passes);
  return true;
}

}  // namespace forerun::bench
