#include "api/predicted_memory.h"

#include <cmath>

#include "graph/op_modules.h"
#include "memory/checkpointing.h"

namespace forerun {
namespace {

// What a process takes of the GPU beside the allocator: measured on an H200 with PyTorch 2.11, 705 to 841 MiB.
constexpr Bytes kContext(int64_t{820} << 20);

constexpr Bytes kCublasHopper(int64_t{32} << 20);
constexpr Bytes kCublasBefore((int64_t{8} << 20) + (int64_t{128} << 10));

constexpr size_t kLiveShown = 10;

bool has_large_cublas_workspace(const Device& device) {
  return device.name.find("H100") != std::string::npos || device.name.find("H200") != std::string::npos;
}

IterationReplayOptions replay_options(const TrainingRun& run, const Device& device, const WorkspaceTable& workspaces,
                                      const MemoryQuestion& question) {
  IterationReplayOptions options;
  options.settings = question.allocator;
  options.cublas_workspace = has_large_cublas_workspace(device) ? kCublasHopper : kCublasBefore;
  options.temporaries.workspaces = &workspaces;
  options.temporaries.channels_last = run.setup.channels_last;
  if (device.sm_count > 0) options.temporaries.device.multiprocessors = device.sm_count;
  return options;
}

// The iteration that the question is about: the run's own, or what parallel training or accumulation makes of it.
const Graph& graph_of(const TrainingRun& run, const MemoryQuestion& question, Graph& own) {
  const Graph* graph = &run.graph;
  if (question.checkpointing) {
    own = checkpointed(*graph).graph;
    graph = &own;
  }
  if (question.accumulating) {
    own = accumulating(*graph);
    graph = &own;
  }
  if (question.parallel.any()) {
    own = per_gpu(*graph, question.parallel);
    graph = &own;
  }
  return *graph;
}

MemoryRange range_of(Bytes expected, const RatioRange& ratio) {
  const auto times = [&](double factor) { return Bytes(std::llround(static_cast<double>(expected.value) * factor)); };
  return {times(ratio.low), expected, times(ratio.high)};
}

PeakMoment moment_of(const Graph& graph, const IterationReplay& replay) {
  PeakMoment moment{.iteration = replay.peak_iteration};
  if (!replay.peak.peak_op.valid()) return moment;
  const Op& op = graph.op(replay.peak.peak_op);
  moment.op = graph.name(op);
  moment.module = graph.names()[op_modules(graph)[replay.peak.peak_op.value]];
  moment.phase = name_of(op.phase);
  return moment;
}

// Takes what parallel training put in out of the parts that it was counted among.
void set_parallel_parts(const Graph& graph, const MemoryLog& log, MemoryEstimate& estimate, MemoryAnswer& answer) {
  for (const LiveBlock& block : live_after(log, log.peak)) {
    if (!block.storage.valid()) continue;
    const Storage& storage = graph.storage(block.storage);
    if (storage.root != Root::none) {
      if (!graph.names()[storage.root_name].starts_with(kBucketName)) continue;
      answer.buckets += Bytes(block.bytes);
      estimate.buffers -= Bytes(block.bytes);
      continue;
    }
    if (!block.made_by.valid()) continue;
    const std::string& maker = graph.name(graph.op(block.made_by));
    if (block.use == Use::gradient || (maker != kGatherOp && maker != kCopyOutOp && maker != kReduceOp)) continue;
    answer.gathered += Bytes(block.bytes);
    (block.use == Use::activation ? estimate.activations : estimate.temporaries) -= Bytes(block.bytes);
  }
}

void set_answer(const Graph& graph, const MemoryLog& log, const MemoryQuestion& question, PredictedMemory& memory) {
  MemoryAnswer& answer = memory.answer;
  const MemorySpread spread = question.spread != nullptr ? *question.spread : MemorySpread();
  memory.estimate = log.replay.peak;
  const AllocatorFigures& figures = log.replay.figures;
  answer.requested = range_of(Bytes(figures.requested.peak), spread.requested);
  answer.allocated = range_of(memory.estimate.peak_allocated, spread.allocated);
  answer.reserved = range_of(memory.estimate.peak_reserved, spread.reserved);
  answer.driver = range_of(memory.estimate.peak_reserved + memory.context, spread.driver);
  answer.fragmentation = memory.estimate.peak_reserved - memory.estimate.peak_allocated;
  answer.retries = figures.retries;
  answer.parallel = question.parallel;
  answer.allocator = question.allocator_text;
  if (question.parallel.any()) set_parallel_parts(graph, log, memory.estimate, answer);
  if (!question.moment) return;
  answer.peak = moment_of(graph, log.replay);
  answer.live = live_shares(graph, log, log.peak);
  if (answer.live.size() > kLiveShown) answer.live.resize(kLiveShown);
}

}  // namespace

Bytes context_of(const Device& /*device*/) { return kContext; }

PredictedMemory predicted_memory(const TrainingRun& run, const Device& device, const WorkspaceTable& workspaces,
                                 const MemoryQuestion& question) {
  Graph own;
  const Graph& graph = graph_of(run, question, own);
  IterationReplayOptions options = replay_options(run, device, workspaces, question);
  const bool logged = question.moment || question.parallel.any();
  const auto replay = [&] {
    return logged ? log_iterations(graph, options) : MemoryLog{.replay = replay_iterations(graph, options)};
  };
  const Bytes room = device.memory - question.reserve;
  PredictedMemory memory{.context = context_of(device)};
  set_answer(graph, replay(), question, memory);
  if (memory.estimate.peak_reserved + memory.context <= room) return memory;
  memory.fits = false;
  if (memory.estimate.peak_allocated + memory.context > room) return memory;
  options.capacity = room.value - memory.context.value;
  const MemoryLog limited = replay();
  if (limited.replay.out_of_memory) return memory;
  memory.answer = {};
  set_answer(graph, limited, question, memory);
  memory.fits = true;
  return memory;
}

PredictedLog predicted_log(const TrainingRun& run, const Device& device, const WorkspaceTable& workspaces,
                           const MemoryQuestion& question) {
  PredictedLog predicted;
  const Graph& graph = graph_of(run, question, predicted.graph);
  if (&graph == &run.graph) predicted.graph = run.graph;
  predicted.log = log_iterations(predicted.graph, replay_options(run, device, workspaces, question));
  return predicted;
}

}  // namespace forerun
