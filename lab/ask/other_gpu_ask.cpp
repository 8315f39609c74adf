#include "lab/ask/other_gpu_ask.h"

#include <fmt/format.h>

#include "predict/predict.h"

namespace forerun {
namespace {

using learn::OriginWork;

constexpr const char* kOriginOfForerun = "NVIDIA H200";

// The work of a run, and which op each piece belongs to.
struct OwnedWork {
  std::vector<OriginWork> pieces;
  std::vector<size_t> ops;
};

// An op's time is shared among its pieces by what they compute.
OwnedWork work_of_ops(const TrainingRun& run, const std::vector<float>& op_us) {
  OwnedWork all;
  for (size_t i = 0; i < run.graph.op_count(); ++i) {
    const auto pieces = learn::gpu_work(run.graph, run.graph.op(OpId(i)), run.setup.precision);
    double sum = 0;
    for (const learn::GpuWork& piece : pieces) sum += piece.flops + piece.bytes;
    for (const learn::GpuWork& piece : pieces) {
      const double share = sum > 0 ? (piece.flops + piece.bytes) / sum : 0;
      all.pieces.push_back({.work = piece, .us = op_us.empty() ? 0 : op_us[i] * share, .launch = {}});
      all.ops.push_back(i);
    }
  }
  return all;
}

std::vector<float> predicted_op_us(const TrainingRun& run, const Device& device, const CostModels& cost_models) {
  std::vector<float> us;
  for (const OpCost& cost : gpu_costs(run, device, cost_models)) {
    us.push_back(static_cast<float>(1e3 * milliseconds(cost.gpu)));
  }
  return us;
}

Result<Device> known_gpu(const CostModels& cost_models, const std::string& name) {
  auto device = cost_models.devices.find(name);
  if (device && !device->is_nvidia()) {
    return Error{"'" + name + "' is no GPU of NVIDIA, and none other is in the tables", "",
                 "ask about one that `forerun devices` lists as NVIDIA's"};
  }
  return device;
}

}  // namespace

Result<OtherGpuAnswer> ask_other_gpu(learn::OtherGpuPredictor& predictor, const TrainingRun& run,
                                     const CostModels& cost_models, const OriginTimes* origin) {
  const auto device = known_gpu(cost_models, run.environment.gpu);
  if (!device) return device.error();
  OtherGpuAnswer answer;
  Device from = *device;
  std::vector<float> op_us;
  if (predictor.needs_origin()) {
    // What was measured on the very GPU that is asked about is no prediction, and not looked at.
    const auto timed = cost_models.devices.find(origin != nullptr ? origin->gpu : std::string(kOriginOfForerun));
    const bool measured =
        origin != nullptr && origin->op_us.size() == run.graph.op_count() && timed.ok() && timed->name != device->name;
    const auto found = known_gpu(cost_models, measured ? origin->gpu : kOriginOfForerun);
    if (!found) return found.error();
    from = *found;
    op_us = measured ? origin->op_us : predicted_op_us(run, from, cost_models);
    answer.based_on = fmt::format("op times {} {}, carried over to {}",
                                  measured ? "measured on" : "that Forerun predicts for", from.name, device->name);
    if (from.name == device->name)
      answer.notes.emplace_back("origin and destination are the same GPU: nothing is carried over");
  } else {
    answer.notes.emplace_back(
        "what it learned from holds tens of microseconds of launching each op: small ops come out slow");
    answer.based_on = fmt::format("tiles and waves of each op, and the data sheet of {}", device->name);
  }
  if (run.setup.precision != Precision::fp32) {
    answer.notes.emplace_back("it learned from fp32 ops; others go by the peak rates of the units that compute them");
  }
  answer.notes.emplace_back("GPU time alone: waiting for the host is not counted");
  answer.notes.emplace_back("it does not tell memory");

  const OwnedWork work = work_of_ops(run, op_us);
  const std::vector<double> us = predictor.predict(work.pieces, from, *device);
  answer.prediction.op_us.assign(run.graph.op_count(), 0);
  double sum = 0;
  for (size_t i = 0; i < us.size(); ++i) {
    answer.prediction.op_us[work.ops[i]] += static_cast<float>(us[i]);
    sum += us[i];
  }
  answer.prediction.gap_us.assign(run.graph.op_count(), 0);
  answer.prediction.gpu_busy_ms = answer.prediction.iteration_ms = sum / 1e3;
  return answer;
}

}  // namespace forerun
