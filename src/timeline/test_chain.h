// Iterations of a chain of layers, for the tests of exchanges of gradients.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "device/device.h"
#include "timeline/gradient_exchange.h"

namespace forerun {

struct LayerCase {
  int64_t forward = 0, backward = 0, update = 0;  // nanoseconds
  int64_t bytes = 0;
};

// Forward, backward and update of a chain of layers on one stream.
struct ChainCase {
  TaskGraph graph;
  TaskId beginning;
  BackwardPass pass;
  int64_t compute = 0, bytes = 0;
};

inline ChainCase chain_of(const std::vector<LayerCase>& layers) {
  ChainCase made;
  TaskGraphBuilder builder;
  Task task;
  task.op_instance = task.event = kNoLink;
  task.kind = TaskKind::mark;
  task.lane = builder.add_lane({LaneKind::host_thread, 0, 0, true, "beginning"});
  made.beginning = builder.add(task);
  task.kind = TaskKind::kernel;
  task.lane = builder.add_lane({LaneKind::gpu_stream, 0, 7, true, "stream 7"});
  const auto add = [&](int64_t duration, StepPhase phase) {
    task.duration = Nanoseconds(duration);
    task.phase = phase;
    made.compute += duration;
    return builder.add(task);
  };
  std::vector<TaskId> forward;
  for (const LayerCase& layer : layers) forward.push_back(add(layer.forward, StepPhase::forward));
  for (size_t i = layers.size(); i-- > 0;) {
    made.pass.gradients.push_back({add(layers[i].backward, StepPhase::backward), forward[i], Bytes(layers[i].bytes)});
    made.bytes += layers[i].bytes;
  }
  for (const LayerCase& layer : layers) made.pass.updates.push_back(add(layer.update, StepPhase::update));
  auto graph = std::move(builder).build();
  EXPECT_TRUE(graph.ok());
  made.graph = std::move(*graph);
  return made;
}

struct ExchangedGraph {
  TaskGraph graph;
  TaskId beginning;
  std::vector<CarriedDependency> carried;
};

inline ExchangedGraph exchanged(const ChainCase& chain, const GradientExchange& exchange) {
  // Without contention: what the lanes alone make of it.
  GradientExchange alone = exchange;
  alone.parts = [parts = exchange.parts](Bytes bytes) {
    std::vector<ExchangePart> list = parts(bytes);
    for (ExchangePart& part : list) part.slowed = 1, part.traffic = 0;
    return list;
  };
  auto sent = exchanged_tasks(chain.graph, {chain.pass}, alone);
  EXPECT_TRUE(sent.ok()) << sent.error().message();
  return {std::move(sent->tasks), sent->now[chain.beginning.value], std::move(sent->carried)};
}

inline Link link_of(double bandwidth, int64_t latency) {
  Link made;
  made.name = "test";
  made.bandwidth = bandwidth;
  made.latency = Nanoseconds(latency);
  return made;
}

}  // namespace forerun
