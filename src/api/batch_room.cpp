#include "api/batch_room.h"

#include <algorithm>
#include <cmath>

#include "derive/compile_support.h"
#include "derive/precision_support.h"

namespace forerun {
namespace {

constexpr int64_t kMostBatch = int64_t{1} << 30;
constexpr size_t kMostPoints = 40;
constexpr int64_t kBatchGrowth = 4;  // from point to point: memory is nearly a straight line over the batch

// What a batch takes of a device beside the context.
struct BatchPoint {
  int64_t batch = 0;
  double bytes = 0;
};

// The least memory that a replay gets by with, to an eighth of what an allocator in endless memory only holds: one that runs out gives
// that back, and goes on. Training on several GPUs rewrites the iteration; there what is held counts.
double needed_bytes(const TrainingRun& run, const Device& device, const CostModels& cost_models,
                    const MemoryQuestion& question) {
  constexpr int kHalvings = 3;
  if (question.parallel.any() || question.accumulating) {
    Device endless = device;
    endless.memory = Bytes(DeviceMemory::kPlenty);
    const PredictedMemory memory = predicted_memory(run, endless, cost_models.workspaces, question);
    return static_cast<double>(memory.estimate.peak_reserved.value);
  }
  IterationReplayOptions options = replay_options(run, device, cost_models.workspaces, question);
  const IterationReplay endless = replay_iterations(run.graph, options);
  int64_t too_little = endless.peak.peak_allocated.value;
  int64_t enough = endless.peak.peak_reserved.value;
  for (int i = 0; i < kHalvings; ++i) {
    options.capacity = too_little + (enough - too_little) / 2;
    (replay_iterations(run.graph, options).out_of_memory ? too_little : enough) = options.capacity;
  }
  return static_cast<double>(enough);
}

// What may be taken: the rest is for the range that runs were seen within.
double room_on(const Device& device, const RatioRange& range, const MemoryQuestion& question) {
  const double high = question.margin ? 1 + *question.margin : range.high;
  return static_cast<double>((device.memory - question.reserve).value) / std::max(high, 1.0) -
         static_cast<double>(context_of(device).value);
}

// The points of a model on GPUs with the same kernels, the smallest batch first, until one is beyond all of their memory.
class BatchLine {
 public:
  BatchLine(const ModelRequest& model, const Device& device, const CostModels& cost_models,
            const MemoryQuestion& question)
      : model_(model), device_(device), cost_models_(cost_models), question_(question) {}

  void find_points(double most_room, int64_t asked) {
    if (!add(1)) return;
    for (int64_t batch = std::max<int64_t>(asked, kBatchGrowth); points_.size() < kMostPoints; batch *= kBatchGrowth) {
      if (points_.back().bytes > most_room || batch > kMostBatch || !add(batch)) return;
    }
  }

  // A single point is enough where it is beyond all memory.
  [[nodiscard]] bool any() const { return points_.size() > 1 || (points_.size() == 1 && !refused_); }

  // `workspace`: what the device's own BLAS takes beyond that of the points' device.
  [[nodiscard]] int64_t largest(double room, double workspace) const {
    const double have = room - workspace;
    if (points_.front().bytes > have) return 0;
    size_t behind = 1;
    while (behind + 1 < points_.size() && points_[behind].bytes <= have) ++behind;
    const BatchPoint &a = points_[behind - 1], &b = points_[behind];
    const double slope = (b.bytes - a.bytes) / static_cast<double>(b.batch - a.batch);
    if (slope <= 0) return a.batch;
    const double meets = static_cast<double>(a.batch) + (have - a.bytes) / slope;
    // A model that takes no larger batch ends at the last point.
    return std::min(static_cast<int64_t>(std::floor(meets)), refused_ ? points_.back().batch : kMostBatch);
  }

 private:
  bool add(int64_t batch) {
    ModelRequest request = model_;
    request.batch = batch;
    const Result<TrainingRun> run = build_run(request, device_);
    refused_ = !run.ok();
    if (!run) return false;
    points_.push_back({batch, needed_bytes(*run, device_, cost_models_, question_)});
    return true;
  }

  const ModelRequest& model_;
  const Device& device_;
  const CostModels& cost_models_;
  const MemoryQuestion& question_;
  std::vector<BatchPoint> points_;
  bool refused_ = false;
};

}  // namespace

std::vector<std::optional<int64_t>> batches_with_room(const ModelRequest& model, Precision precision,
                                                      std::span<const Device> devices, const CostModels& cost_models,
                                                      const MemoryQuestion& question) {
  std::vector<std::optional<int64_t>> batches(devices.size());
  // What a GPU's kernels take differs little with the attention that they choose.
  const bool compiles = model.setup.compile != CompileMode::none;
  const auto trains = [&](const Device& device) {
    return derive::check_precision(precision, device).ok() && (!compiles || derive::check_compiler(device).ok());
  };
  const auto first = std::find_if(devices.begin(), devices.end(), trains);
  if (first == devices.end()) return batches;
  const RatioRange range = memory_intervals_of(cost_models, model.setup.compile).driver;
  double most = 0;
  for (const Device& device : devices) most = std::max(most, room_on(device, range, question));
  BatchLine line(model, *first, cost_models, question);
  line.find_points(most, model.batch.value_or(1));
  if (!line.any()) return batches;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!trains(devices[i])) continue;
    const auto workspace = static_cast<double>((devices[i].blas_workspace - first->blas_workspace).value);
    batches[i] = line.largest(room_on(devices[i], range, question), 2 * workspace);
  }
  return batches;
}

}  // namespace forerun
