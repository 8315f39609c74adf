#include "predict/predicted_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graph/op_modules.h"

namespace forerun {
namespace {

// What a process takes of the GPU beside the allocator: measured on an H200 with PyTorch 2.11, 705 to 841 MiB.
constexpr Bytes kContext(int64_t{820} << 20);

constexpr size_t kLiveShown = 10;

// The iteration that the question is about: the run's own, or what parallel training or accumulation makes of it.
const Graph& graph_of(const TrainingRun& run, const MemoryQuestion& question, Graph& own) {
  const Graph* graph = &run.graph;
  const bool shards = question.parallel.any() && question.parallel.zero >= 2;  // of gradients, and those are added up
  if (shards) {
    own = per_gpu(*graph, question.parallel);
    graph = &own;
  }
  if (question.accumulating) {
    own = accumulating(*graph);
    graph = &own;
  }
  if (question.parallel.any() && !shards) {
    own = per_gpu(*graph, question.parallel);
    graph = &own;
  }
  return *graph;
}

Bytes scaled(Bytes bytes, double factor) { return Bytes(std::llround(static_cast<double>(bytes.value) * factor)); }

MemoryRange range_of(Bytes expected, const RatioRange& ratio) {
  return {scaled(expected, ratio.low), expected, scaled(expected, ratio.high)};
}

MemoryIntervals asked_intervals(const MemoryQuestion& question) {
  return question.intervals.value_or(MemoryIntervals());
}

// Between which multiples of the prediction a run is taken to lie when it is asked whether it fits.
RatioRange verdict_range(const MemoryQuestion& question) {
  RatioRange range = asked_intervals(question).driver;
  if (question.margin) range.high = 1 + *question.margin;
  return range;
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

// Sums of gradients are gradients.
void set_accumulated(const Graph& graph, const MemoryLog& log, MemoryEstimate& estimate) {
  for (const LiveBlock& block : live_after(log, log.peak)) {
    if (!block.storage.valid()) continue;
    const Storage& storage = graph.storage(block.storage);
    if (storage.root == Root::none || !graph.names()[storage.root_name].starts_with(kAccumulatedName)) continue;
    estimate.buffers -= Bytes(block.bytes);
    estimate.gradients += Bytes(block.bytes);
  }
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
  const MemoryIntervals intervals = asked_intervals(question);
  memory.estimate = log.replay.peak;
  const AllocatorFigures& figures = log.replay.figures;
  answer.requested = range_of(Bytes(figures.requested.peak), intervals.requested);
  answer.allocated = range_of(memory.estimate.peak_allocated, intervals.allocated);
  answer.reserved = range_of(memory.estimate.peak_reserved, intervals.reserved);
  answer.driver = range_of(memory.estimate.peak_reserved + memory.context, intervals.driver);
  answer.fragmentation = memory.estimate.peak_reserved - memory.estimate.peak_allocated;
  answer.retries = figures.retries;
  answer.parallel = question.parallel;
  answer.allocator = question.allocator_text;
  if (question.parallel.any()) set_parallel_parts(graph, log, memory.estimate, answer);
  if (question.accumulating) set_accumulated(graph, log, memory.estimate);
  if (!question.moment) return;
  answer.peak = moment_of(graph, log.replay);
  answer.live = live_shares(graph, log, log.peak);
  if (answer.live.size() > kLiveShown) answer.live.resize(kLiveShown);
}

// A run that surely fits holds no more than there is: the allocator gives unused segments back before that.
void cap_ranges(Bytes room, PredictedMemory& memory) {
  MemoryAnswer& answer = memory.answer;
  answer.driver.high = std::max(answer.driver.expected, std::min(answer.driver.high, room));
  answer.reserved.high = std::max(answer.reserved.expected, std::min(answer.reserved.high, room - memory.context));
}

// What a run that does not fit would have to hold at the least.
void set_lower_bound(Bytes room, const MemoryQuestion& question, PredictedMemory& memory) {
  MemoryAnswer& answer = memory.answer;
  const MemoryIntervals intervals = asked_intervals(question);
  const Bytes held = std::max(memory.estimate.peak_allocated, room - memory.context);
  memory.estimate.peak_reserved = held;
  answer.at_least = true;
  answer.retries = 0;
  answer.fragmentation = held - memory.estimate.peak_allocated;
  answer.reserved = range_of(held, intervals.reserved);
  answer.driver = range_of(held + memory.context, intervals.driver);
  if (answer.verdict != FitVerdict::does_not_fit) return;
  answer.reserved.low = std::max(answer.reserved.low, room - memory.context);
  answer.driver.low = std::max(answer.driver.low, room);
}

}  // namespace

Status check_memory(const MemoryQuestion& question) {
  constexpr int64_t kMostGpus = int64_t{1} << 20;
  const DataParallel& parallel = question.parallel;
  if (parallel.gpus < 1 || parallel.gpus > kMostGpus) {
    return Error{fmt::format("{} GPUs cannot share a run", parallel.gpus), "--gpus",
                 fmt::format("give 1 to {}", kMostGpus)};
  }
  if (parallel.zero < 0 || parallel.zero > 3) {
    return Error{fmt::format("there is no ZeRO stage {}", parallel.zero), "--zero", "give 1, 2 or 3"};
  }
  if (parallel.bucket.value < 1 || parallel.first_bucket.value < 1) {
    return Error{"a bucket of gradients holds nothing", "", "give a size above 0"};
  }
  if (question.reserve.value < 0) return Error{"the reserve is negative", "--reserve", "give a size from 0"};
  const double margin = question.margin.value_or(0);
  if (!(margin >= 0 && margin <= 1000)) return Error{"the margin is no share from 0", "--margin", "give 5%"};
  return {};
}

Bytes context_of(const Device& /*device*/) { return kContext; }

IterationReplayOptions replay_options(const TrainingRun& run, const Device& device, const WorkspaceTable& workspaces,
                                      const MemoryQuestion& question) {
  IterationReplayOptions options;
  options.settings = question.allocator;
  options.cublas_workspace = device.blas_workspace;
  options.keeps_gradients = rules_of(run.setup.loop).keeps_gradients;
  options.temporaries.workspaces = &workspaces;
  options.temporaries.channels_last = run.setup.channels_last;
  if (run.compiled != nullptr && launches_graphs(run.setup.compile)) options.cuda_graphs = run.compiled.get();
  if (run.compiled != nullptr) options.tuning_buffer = device.l2;
  if (device.sm_count > 0) options.temporaries.device.multiprocessors = device.sm_count;
  return options;
}

PredictedMemory predicted_memory(const TrainingRun& run, const Device& device, const WorkspaceTable& workspaces,
                                 const MemoryQuestion& question, const IterationReplay* known) {
  Graph own;
  const Graph& graph = graph_of(run, question, own);
  IterationReplayOptions options = replay_options(run, device, workspaces, question);
  const bool logged = question.moment || question.parallel.any() || question.accumulating;
  const auto replay = [&] {
    return logged ? log_iterations(graph, options) : MemoryLog{.replay = replay_iterations(graph, options)};
  };
  PredictedMemory memory{.context = context_of(device)};
  const MemoryLog endless = known != nullptr && !logged ? MemoryLog{.replay = *known} : replay();
  const IterationReplay& first = endless.replay;
  const Bytes room = device.memory - question.reserve;

  // Whether the run gets by where it takes `factor` times what is predicted. `kept`: the log of the replay that this
  // took, if any; may be null.
  const auto gets_by = [&](double factor, std::optional<MemoryLog>* kept) {
    options.capacity = scaled(room, 1 / factor).value - memory.context.value;
    if (first.out_of_memory || first.peak.peak_allocated.value > options.capacity) return false;
    if (first.peak.peak_reserved.value <= options.capacity) return true;
    if (kept == nullptr) return !replay_iterations(graph, options).out_of_memory;
    *kept = replay();
    return !(*kept)->replay.out_of_memory;
  };
  const RatioRange ratio = verdict_range(question);
  std::optional<MemoryLog> limited;
  memory.fits = gets_by(1, &limited);
  set_answer(graph, memory.fits && limited ? *limited : endless, question, memory);
  if (memory.fits) {
    const bool surely = ratio.high <= 1 || gets_by(ratio.high, nullptr);
    memory.answer.verdict = surely ? FitVerdict::fits : FitVerdict::may_not_fit;
    if (surely) cap_ranges(room, memory);
    return memory;
  }
  const bool perhaps = ratio.low < 1 && gets_by(ratio.low, nullptr);
  memory.answer.verdict = perhaps ? FitVerdict::may_not_fit : FitVerdict::does_not_fit;
  set_lower_bound(first.out_of_memory ? Bytes(DeviceMemory::kPlenty) : room, question, memory);
  return memory;
}

Result<PredictedLog> predicted_log(const TrainingRun& run, const Device& device, const WorkspaceTable& workspaces,
                                   const MemoryQuestion& question) {
  PredictedLog predicted;
  const Graph& graph = graph_of(run, question, predicted.graph);
  if (&graph == &run.graph) predicted.graph = run.graph;
  predicted.log = log_iterations(predicted.graph, replay_options(run, device, workspaces, question));
  if (predicted.log.replay.out_of_memory) {
    return Error{fmt::format("the run needs more than {} PiB", DeviceMemory::kPlenty >> 50), run.id,
                 "choose a smaller configuration"};
  }
  return predicted;
}

}  // namespace forerun
