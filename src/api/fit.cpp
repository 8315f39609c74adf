#include "api/fit.h"

#include <fmt/format.h>

#include <cmath>

#include "api/fit_search.h"
#include "base/parallel.h"
#include "derive/optimizer.h"
#include "predict/compiled.h"

namespace forerun {
namespace {

// Values that models with a stride, a patch or a window take, tried in turn.
constexpr int64_t kFirstValues[] = {1, 2, 4, 7, 8, 14, 16, 28, 32, 56, 64, 112, 128, 224, 256, 448, 512};
constexpr int64_t kAxisSteps[] = {1, 2, 4, 7, 8, 14, 16, 28, 32, 56, 64, 112, 128, 224};

ModelRequest with_value(const ModelRequest& model, const std::string& axis, int64_t value) {
  ModelRequest request = model;
  if (axis == "batch") {
    request.batch = value;
    return request;
  }
  std::erase_if(request.settings, [&](const auto& setting) { return setting.first == axis; });
  request.settings.emplace_back(axis, fmt::format("{}", value));
  return request;
}

// A way to train the model, and how much of it fits.
class Variant {
 public:
  Variant(const FitRequest& request, const Device& device, const CostModels& cost_models, Work& work)
      : request_(request), device_(device), cost_models_(cost_models), work_(work) {
    request_.memory.reserve =
        Bytes(std::llround(static_cast<double>(device.memory.value) * request.reserve_share)) + request.reserve;
    request_.memory.intervals = memory_intervals_of(cost_models, request.model.setup.compile);
  }

  [[nodiscard]] Result<TrainingRun> build(int64_t value) const {
    return build_run(with_value(request_.model, request_.axis, value), device_);
  }
  [[nodiscard]] FitPoint judge(const TrainingRun& run) const {
    const PredictedMemory memory = predicted_memory(run, device_, cost_models_.workspaces, request_.memory);
    return {.fits = memory.answer.verdict == FitVerdict::fits,
            .verdict = memory.answer.verdict,
            .allocated = memory.estimate.peak_allocated,
            .reserved = memory.estimate.peak_reserved,
            .driver = memory.estimate.peak_reserved + memory.context,
            .retries = memory.answer.retries};
  }
  [[nodiscard]] FitSearch search(int64_t smallest, int64_t step) const {
    return {[this](int64_t value) { return build(value); },
            [this](const TrainingRun& run) { return judge(run); },
            smallest,
            step,
            room(),
            work_};
  }
  // What predictions may come to.
  [[nodiscard]] Bytes room() const {
    const auto whole = static_cast<double>((device_.memory - request_.memory.reserve).value);
    return Bytes(std::llround(whole / (1 + margin()))) - context_of(device_);
  }
  [[nodiscard]] double margin() const {
    return request_.memory.margin.value_or(request_.memory.intervals->driver.high - 1);
  }
  [[nodiscard]] Result<Prediction> predicted(int64_t value) const {
    if (const Status status = work_.check(); !status.ok()) return status.error();
    const Result<TrainingRun> run = build(value);
    if (!run) return run.error();
    MemoryQuestion question = request_.memory;
    question.margin.reset();
    return predict(*run, device_, cost_models_, question);
  }

  FitRequest& request() { return request_; }
  [[nodiscard]] const FitRequest& request() const { return request_; }

 private:
  FitRequest request_;
  const Device& device_;
  const CostModels& cost_models_;
  Work& work_;
};

// The values that the model takes; an Error where it takes none of those tried.
struct AxisGrid {
  int64_t smallest = 1;
  int64_t step = 1;
};
Result<AxisGrid> grid_of(const Variant& variant) {
  if (variant.request().axis == "batch") return AxisGrid{};
  Error first;
  for (const int64_t smallest : kFirstValues) {
    const Result<TrainingRun> run = variant.build(smallest);
    if (!run) {
      if (first.what.empty()) first = run.error();
      continue;
    }
    for (const int64_t step : kAxisSteps) {
      if (variant.build(smallest + step)) return AxisGrid{smallest, step};
    }
    return AxisGrid{smallest, smallest};
  }
  return first;
}

// What a change to the training would let in, and the iterations derived to find out; no change where it does not apply.
struct TriedChange {
  std::optional<FitChange> change;
  int64_t graphs = 0;
};

class Changes {
 public:
  Changes(const Variant& base, const FitAnswer& answer, FitSearch& search, const AxisGrid& grid)
      : base_(base),
        answer_(answer),
        grid_(grid),
        value_(answer.largest.value_or(answer.smallest)),
        at_smallest_(search.at(grid.smallest)),
        at_value_(search.at(value_)) {}

  // Each is independent of the others, so they are tried at once; the order of the answers is that of this list.
  [[nodiscard]] std::vector<TriedChange> run() const {
    const TrainingSetup& setup = answer_.at.setup;
    std::vector<TriedChange (Changes::*)() const> tried;
    const bool wide = setup.precision == Precision::fp32 || setup.precision == Precision::tf32;
    if (wide) tried.push_back(&Changes::mixed_precision);
    if (setup.checkpointing == Checkpointing::none) tried.push_back(&Changes::checkpointing);
    OptimizerSpec fused = setup.optimizer;
    fused.impl = OptimizerImpl::fused;
    const bool has_fused = derive::available_impl(fused) == OptimizerImpl::fused;
    if (setup.optimizer.impl != OptimizerImpl::fused && has_fused) tried.push_back(&Changes::fused);
    if (base_.request().axis == "batch") tried.push_back(&Changes::accumulation);
    if (!base_.request().memory.allocator.expandable_segments) tried.push_back(&Changes::expandable);
    std::vector<TriedChange> done(tried.size());
    parallel_for(tried.size(), tried.size(), [&](size_t i) { done[i] = (this->*tried[i])(); });
    return done;
  }

 private:
  // Saving at the answer's value, and the largest value with the change.
  [[nodiscard]] TriedChange finish(const Variant& changed, FitChange change) const {
    FitSearch search = changed.search(grid_.smallest, grid_.step);
    const FitPoint& there = search.at(value_);
    change.saving = at_value_.allocated - there.allocated;
    change.largest = search.largest_near(guess_from(there), value_);
    change.reaches_limit = change.largest && !search.refusal(*change.largest + grid_.step).empty();
    return {std::move(change), search.graphs()};
  }

  // In proportion to what the change leaves of the memory that grows with the value.
  [[nodiscard]] int64_t guess_from(const FitPoint& there) const {
    const auto fixed = static_cast<double>(at_smallest_.allocated.value);
    const double before = static_cast<double>(at_value_.allocated.value) - fixed;
    const double after = static_cast<double>(there.allocated.value) - fixed;
    if (before <= 0 || after <= before / 20) return value_;
    return static_cast<int64_t>(static_cast<double>(value_) * std::max(1.0, before / after));
  }

  [[nodiscard]] double against_now(const Result<Prediction>& changed) const {
    if (!changed || answer_.at.times.iteration.value == 0) return 1;
    return static_cast<double>(changed->times.iteration.value) / static_cast<double>(answer_.at.times.iteration.value);
  }

  // The optimizer that the request leaves to the kind of input stays the same.
  [[nodiscard]] Variant changed() const {
    Variant variant = base_;
    variant.request().model.setup = answer_.at.setup;
    variant.request().model.default_optimizer = false;
    return variant;
  }

  [[nodiscard]] TriedChange mixed_precision() const {
    Variant variant = changed();
    variant.request().model.setup.precision = Precision::amp_bf16;
    if (!variant.build(grid_.smallest)) return {};  // the GPU has no units for it
    return finish(variant, {.name = "bf16 mixed precision",
                            .how = "--precision amp_bf16 (torch.autocast)",
                            .time = against_now(variant.predicted(value_))});
  }

  [[nodiscard]] TriedChange fused() const {
    Variant variant = changed();
    variant.request().model.setup.optimizer.impl = OptimizerImpl::fused;
    if (!variant.build(grid_.smallest)) return {};  // a capture is trained as it was recorded
    return finish(variant, {.name = "fused optimizer",
                            .how = "--optimizer NAME:impl=fused (fused=True)",
                            .time = against_now(variant.predicted(value_))});
  }

  // Each block's forward pass once more.
  [[nodiscard]] TriedChange checkpointing() const {
    Variant variant = changed();
    variant.request().model.setup.checkpointing = Checkpointing::block;
    if (!variant.build(grid_.smallest)) return {};  // the model has no blocks
    return finish(variant, {.name = "activation checkpointing",
                            .how = "--checkpoint block (torch.utils.checkpoint around each block)",
                            .time = against_now(variant.predicted(value_)),
                            .note = "blocks run their forward pass twice"});
  }

  // Half the batch twice; gradients are there from the first half.
  [[nodiscard]] TriedChange accumulation() const {
    if (value_ < 2) return {};
    Variant variant = changed();
    variant.request().model.setup.accumulate *= 2;
    FitSearch search = variant.search(grid_.smallest, grid_.step);
    const Result<Prediction> half = variant.predicted((value_ + 1) / 2);
    if (!half) return {};
    FitChange change{.name = "gradient accumulation",
                     .how = "--accumulate 2, two micro-batches of half the batch",
                     .saving = at_value_.allocated - half->memory.peak_allocated,
                     .time = against_now(half)};
    const auto micro = search.largest_near(value_);
    if (!micro) return {{}, search.graphs() + 1};
    change.largest = *micro * 2;
    change.note = fmt::format("micro-batches of up to {}; more of them for a larger batch", *micro);
    return {std::move(change), search.graphs() + 1};
  }

  [[nodiscard]] TriedChange expandable() const {
    Variant variant = changed();
    variant.request().memory.allocator.expandable_segments = true;
    return finish(variant, {.name = "expandable segments",
                            .how = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                            .time = 1,
                            .time_modelled = true,
                            .note = "less is lost between blocks; mapping costs time in the first iterations only"});
  }

  const Variant& base_;
  const FitAnswer& answer_;
  AxisGrid grid_;
  int64_t value_;
  FitPoint at_smallest_;
  FitPoint at_value_;
};

}  // namespace

Result<FitAnswer> fit(const FitRequest& given, const Device& device, const CostModels& cost_models,
                      const WorkControl& control) {
  Work work(control, "iterations derived");
  if (const Status status = check_memory(given.memory); !status.ok()) return status.error();
  if (const Status status = check_compiled(given.model.setup, given.memory); !status.ok()) return status.error();
  if (!(given.reserve_share >= 0 && given.reserve_share < 1) || given.reserve.value < 0) {
    return Error{"the reserve is no share or size", "--reserve", "give a share or a size: 5%, 2GiB"};
  }
  if (const Status status = check_job_length(given.job); !status.ok()) return status.error();
  const auto price = price_of_run(given.prices, device, given.job);
  if (!price) return price.error();
  FitRequest request = given;
  if (request.axis == "seq") request.axis = "length";
  const Variant base(request, device, cost_models, work);
  const Result<AxisGrid> grid = grid_of(base);
  if (!grid) return grid.error();
  FitSearch search = base.search(grid->smallest, grid->step);
  FitAnswer answer{.axis = given.axis, .step = grid->step, .smallest = grid->smallest};
  answer.reserve = base.request().memory.reserve;
  answer.margin = base.margin();
  answer.largest = search.largest();
  if (const Status status = work.check(); !status.ok()) return status.error();
  if (const std::string refused = search.refusal(grid->smallest); !refused.empty()) {
    return base.build(grid->smallest).error();
  }
  Result<Prediction> at = base.predicted(answer.largest.value_or(answer.smallest));
  if (!at) return at.error();
  answer.at = std::move(*at);
  if (const Status status = set_job(given.job, device, *price, answer.at); !status.ok()) return status.error();
  if (!answer.largest) answer.at.job.reset();  // what does not surely fit is no run to plan
  if (answer.largest) {
    answer.next = search.at(*answer.largest + grid->step);
    answer.limit = search.refusal(answer.next->value);
    answer.monotone = search.monotone();
    answer.fits_again = search.fits_again();
  }
  if (request.changes) {
    for (TriedChange& tried : Changes(base, answer, search, *grid).run()) {
      answer.graphs += tried.graphs;
      const bool larger = tried.change && tried.change->largest.value_or(0) > answer.largest.value_or(0);
      if (larger) answer.changes.push_back(std::move(*tried.change));
    }
  }
  answer.graphs += search.graphs() + 1;
  if (const Status status = work.check(); !status.ok()) return status.error();
  return answer;
}

}  // namespace forerun
