#include "api/gpu_evidence.h"

#include <cmath>

#include "base/data_dir.h"
#include "base/json_file.h"

namespace forerun {

Result<GpuEvidences> GpuEvidences::load(const CostModels& cost_models) {
  const auto folder = data_dir();
  if (!folder) return folder.error();
  GpuEvidences evidences;
  Result<JsonObject> others = JsonObject::read(*folder / "evaluations" / "gpus.json");
  if (!others) return others.error();
  for (JsonObject& row : others->objects("ops")) {
    evidences.ops_[row.text("gpu")][row.text("ops")] += row.integer("number");
  }
  for (JsonObject& run : others->objects("runs")) {
    const double predicted = run.number("predicted_ms") * run.number("yardstick");
    const double error = std::abs(predicted / run.number("measured_ms") - 1);
    const bool alone = run.flag("judged_alone");
    (alone ? evidences.judged_alone_ : evidences.by_gpu_)[run.text("gpu")].add(error);
    if (!alone) evidences.by_distance_[run.text("distance")].add(error);
  }
  if (!others->status().ok()) return others->status().error();

  if (!cost_models.residual_model) return evidences;
  evidences.measured_ = cost_models.residual_model->gpu;
  for (const Device& device : cost_models.devices.devices()) {
    evidences.distances_[device.name] = name_of(distance_to(device, cost_models, Precision::fp32));
  }
  Result<JsonObject> here = JsonObject::read(*folder / "evaluations" / "h200.json");
  if (!here) return here.error();
  for (JsonObject& predictor : here->objects("predictors")) {
    if (predictor.text("predictor") != "forerun" || evidences.own_.error) continue;
    for (JsonObject& quantity : predictor.objects("evaluations")) {
      if (quantity.text("quantity") != "iteration_ms") continue;
      JsonObject gpu_bound = quantity.object("by_bound").object("gpu");
      evidences.own_ = {.ops = {}, .runs = gpu_bound.integer("count"), .error = gpu_bound.number("mre"), .of = "own"};
    }
  }
  if (!here->status().ok()) return here->status().error();
  Result<JsonObject> data = JsonObject::read(*folder / "cost" / "measured.json");
  if (!data) return data.error();
  evidences.own_.ops["measured here"] = data->object("sample_statuses").integer("ok");
  if (!data->status().ok()) return data->status().error();
  return evidences;
}

GpuEvidence GpuEvidences::of(const Device& device) const {
  if (device.name == measured_) return own_;
  GpuEvidence evidence;
  if (const auto ops = ops_.find(device.name); ops != ops_.end()) evidence.ops = ops->second;
  const auto tell = [&](const Mean& mean, const std::string& of) {
    evidence.error = mean.sum / static_cast<double>(mean.count);
    evidence.of = of;
  };
  const auto like_here = by_gpu_.find(device.name);
  const auto alone = judged_alone_.find(device.name);
  if (like_here != by_gpu_.end() || alone != judged_alone_.end()) {
    const Mean& runs = like_here != by_gpu_.end() ? like_here->second : alone->second;
    evidence.runs = runs.count;
    tell(runs, "own");
  } else if (const auto distance = distances_.find(device.name); distance != distances_.end()) {
    const auto like = by_distance_.find(distance->second);
    const bool alike = distance->second != name_of(GpuDistance::beyond);  // those have only that in common
    if (alike && like != by_distance_.end()) tell(like->second, distance->second);
  }
  return evidence;
}

}  // namespace forerun
