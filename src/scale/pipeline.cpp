#include "scale/pipeline.h"

#include <algorithm>

#include "base/check.h"

namespace forerun::scale {
namespace {

constexpr int64_t kMostPasses = int64_t{1} << 17;  // played; beyond them rounds are counted
constexpr int64_t kFewestRounds = 8;  // of as many micro-batches as devices: the pipeline is full long before

// The k-th pass of one direction: groups of `devices` micro-batches go through chunk after chunk.
PipelinePass interleaved_pass(const PipelineShape& shape, int64_t k, bool backward) {
  const int64_t round = shape.devices * shape.chunks;
  const int64_t within = k % round;
  int64_t chunk = within / shape.devices;
  if (backward) chunk = shape.chunks - 1 - chunk;
  return {static_cast<int32_t>(chunk), static_cast<int32_t>(k / round * shape.devices + within % shape.devices),
          backward};
}

PipelinePass pass_number(const PipelineShape& shape, int64_t k, bool backward) {
  if (shape.chunks == 1) return {0, static_cast<int32_t>(k), backward};
  return interleaved_pass(shape, k, backward);
}

int64_t warm_up(const PipelineShape& shape, int64_t device) {
  const int64_t passes = shape.micro_batches * shape.chunks;
  const int64_t wanted = shape.chunks == 1 ? shape.devices - device - 1
                                           : 2 * (shape.devices - device - 1) + (shape.chunks - 1) * shape.devices;
  return std::min(wanted, passes);
}

// The first device has nobody before it who would wait.
bool parts_backward(const PipelineShape& shape, int64_t device) { return shape.zero_bubble && device > 0; }

// Where passes end: by direction, virtual stage and micro-batch; below zero: not yet run.
class Ends {
 public:
  explicit Ends(const PipelineShape& shape)
      : shape_(shape),
        ends_(static_cast<size_t>(2 * shape.devices * shape.chunks * shape.micro_batches), Nanoseconds(-1)) {}

  Nanoseconds& at(bool backward, int64_t stage, int64_t micro_batch) {
    const int64_t stages = shape_.devices * shape_.chunks;
    return ends_[static_cast<size_t>(((backward ? stages : 0) + stage) * shape_.micro_batches + micro_batch)];
  }

 private:
  PipelineShape shape_;
  std::vector<Nanoseconds> ends_;
};

// The pass that this one waits for, as (backward, stage); stage -1: none.
struct Before {
  bool backward;
  int64_t stage;
  bool hops;
};
Before before(const PipelinePass& pass, int64_t stage, int64_t stages) {
  if (!pass.backward) return {false, stage - 1, true};
  if (stage == stages - 1) return {false, stage, false};
  return {true, stage + 1, true};
}

// `passes`: may be null; else where each pass ends, by device.
PipelineRun play(std::span<const StageTimes> stages, const PipelineShape& shape, Nanoseconds hop,
                 std::vector<std::vector<Nanoseconds>>* passes = nullptr) {
  const auto devices = static_cast<size_t>(shape.devices);
  std::vector<std::vector<PipelinePass>> orders;
  for (int64_t d = 0; d < shape.devices; ++d) orders.push_back(device_order(shape, d));
  std::vector<size_t> next(devices, 0);
  PipelineRun run{.end = {}, .device_end = std::vector<Nanoseconds>(devices)};
  Ends ends(shape);
  const auto count = static_cast<int64_t>(stages.size());
  bool moved = true;
  while (moved) {
    moved = false;
    for (size_t d = 0; d < devices; ++d) {
      while (next[d] < orders[d].size()) {
        const PipelinePass& pass = orders[d][next[d]];
        const int64_t stage = pass.chunk * shape.devices + static_cast<int64_t>(d);
        const Before waits = before(pass, stage, count);
        Nanoseconds ready{};
        if (waits.stage >= 0 && !pass.weights) {
          ready = ends.at(waits.backward, waits.stage, pass.micro_batch);
          if (ready.value < 0) break;
          if (waits.hops && shape.devices > 1) ready += hop;
        }
        const StageTimes& times = stages[static_cast<size_t>(stage)];
        const Nanoseconds end =
            std::max(ready, run.device_end[d]) + duration_of(pass, times, shape, static_cast<int64_t>(d));
        if (passes != nullptr) (*passes)[d].push_back(end);
        if (!pass.weights) ends.at(pass.backward, stage, pass.micro_batch) = end;
        run.device_end[d] = end;
        ++next[d];
        moved = true;
      }
    }
  }
  for (size_t d = 0; d < devices; ++d) {
    CHECK(next[d] == orders[d].size(), "a pipeline's schedule waits for itself");
    run.end = std::max(run.end, run.device_end[d]);
  }
  return run;
}

}  // namespace

Nanoseconds duration_of(const PipelinePass& pass, const StageTimes& stage, const PipelineShape& shape, int64_t device) {
  if (pass.weights) return stage.weights;
  if (!pass.backward) return stage.forward;
  return parts_backward(shape, device) ? stage.backward - stage.weights : stage.backward;
}

std::vector<std::vector<Nanoseconds>> pass_ends(std::span<const StageTimes> stages, const PipelineShape& shape,
                                                Nanoseconds hop) {
  std::vector<std::vector<Nanoseconds>> passes(static_cast<size_t>(shape.devices));
  play(stages, shape, hop, &passes);
  return passes;
}

std::vector<PipelinePass> device_order(const PipelineShape& shape, int64_t device) {
  CHECK(shape.chunks == 1 || shape.micro_batches % shape.devices == 0, "micro-batches do not fill the rounds");
  CHECK(shape.chunks == 1 || !shape.zero_bubble, "backward passes in two parts are those of one chunk");
  const int64_t passes = shape.micro_batches * shape.chunks;
  const int64_t first = warm_up(shape, device);
  std::vector<PipelinePass> order;
  const bool parted = parts_backward(shape, device);
  order.reserve(static_cast<size_t>((parted ? 3 : 2) * passes));
  int64_t weights = 0;  // micro-batches whose weights' gradients are made
  const auto add_weights = [&] {
    if (parted && weights < passes) order.push_back({0, static_cast<int32_t>(weights++), true, true});
  };
  for (int64_t k = 0; k < first; ++k) order.push_back(pass_number(shape, k, false));
  for (int64_t k = first; k < passes; ++k) {
    order.push_back(pass_number(shape, k, false));
    order.push_back(pass_number(shape, k - first, true));
    if (k - first >= device) add_weights();
  }
  for (int64_t k = passes - first; k < passes; ++k) {
    order.push_back(pass_number(shape, k, true));
    add_weights();
  }
  while (parted && weights < passes) add_weights();
  return order;
}

PipelineRun run_pipeline(std::span<const StageTimes> stages, const PipelineShape& shape, Nanoseconds hop) {
  CHECK(static_cast<int64_t>(stages.size()) == shape.devices * shape.chunks, "one time for each virtual stage");
  if (shape.devices == 1 && shape.chunks == 1) {
    const Nanoseconds end = (stages.front().forward + stages.front().backward) * shape.micro_batches;
    return {.end = end, .device_end = {end}};
  }
  const int64_t unit = shape.devices;  // what repeats, in micro-batches
  const int64_t most = kMostPasses / (2 * static_cast<int64_t>(stages.size()));
  const int64_t rest = shape.micro_batches % unit;  // rounds are whole
  const int64_t played = std::max(kFewestRounds * unit, most / unit * unit) + rest;
  if (shape.micro_batches <= played + unit) return play(stages, shape, hop);
  PipelineShape small = shape;
  small.micro_batches = played;
  PipelineRun run = play(stages, small, hop);
  small.micro_batches = played + unit;
  const PipelineRun more = play(stages, small, hop);
  const int64_t rounds = (shape.micro_batches - played) / unit;
  for (size_t d = 0; d < run.device_end.size(); ++d) {
    run.device_end[d] += (more.device_end[d] - run.device_end[d]) * rounds;
  }
  run.end += (more.end - run.end) * rounds;
  return run;
}

Result<TaskGraph> pipeline_tasks(std::span<const StageTimes> stages, const PipelineShape& shape, Nanoseconds hop) {
  TaskGraphBuilder builder;
  const auto count = static_cast<int64_t>(stages.size());
  std::vector<TaskId> ids(static_cast<size_t>(2 * count * shape.micro_batches));
  const auto place = [&](bool backward, int64_t stage, int64_t micro_batch) -> TaskId& {
    return ids[static_cast<size_t>(((backward ? count : 0) + stage) * shape.micro_batches + micro_batch)];
  };
  for (int64_t d = 0; d < shape.devices; ++d) {
    const LaneId lane =
        builder.add_lane({.kind = LaneKind::gpu_stream, .rank = static_cast<int32_t>(d), .name = "stage"});
    for (const PipelinePass& pass : device_order(shape, d)) {
      const int64_t stage = pass.chunk * shape.devices + d;
      const StageTimes& times = stages[static_cast<size_t>(stage)];
      Task task;
      task.duration = duration_of(pass, times, shape, d);
      task.lane = lane;
      task.kind = TaskKind::kernel;
      task.phase = pass.backward ? StepPhase::backward : StepPhase::forward;
      const TaskId added = builder.add(task);
      if (!pass.weights) place(pass.backward, stage, pass.micro_batch) = added;
    }
  }
  for (int64_t stage = 0; stage < count; ++stage) {
    for (int64_t m = 0; m < shape.micro_batches; ++m) {
      for (const bool backward : {false, true}) {
        const Before waits = before({0, 0, backward}, stage, count);
        if (waits.stage < 0) continue;
        builder.depend(place(backward, stage, m), {.before = place(waits.backward, waits.stage, m),
                                                   .lag = waits.hops && shape.devices > 1 ? hop : Nanoseconds()});
      }
    }
  }
  return std::move(builder).build();
}

}  // namespace forerun::scale
