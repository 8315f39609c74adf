// The part of api/predict.h that takes files; predict.cpp answers for names of the zoo without it.
#include <fmt/format.h>

#include "api/predict.h"
#include "base/check.h"

namespace forerun {

Result<PredictAnswer> predict(const PredictRequest& request, const CostModels& cost_models,
                              const WorkControl& control) {
  return predict_built(request, built_anew(build_run), cost_models, control);
}

Result<PredictRecordsAnswer> predict_records(const PredictRecordsRequest& request, const CostModels& cost_models,
                                             const RecordHandlers& handlers, const WorkControl& control) {
  if (const Status status = check_memory(request.memory); !status.ok()) return status.error();
  if (const Status status = check_job_length(request.job); !status.ok()) return status.error();
  std::optional<Device> gpu;
  if (!request.gpu.empty()) {
    Result<Device> found = cost_models.devices.find(request.gpu);
    if (!found) return found.error();
    gpu = std::move(*found);
  }
  PredictRecordsAnswer answer;
  const auto bad_record = [&](const Error& error) {
    ++answer.bad;
    if (handlers.bad_record) handlers.bad_record(error);
  };
  const auto predicted_record = [&](const Prediction& predicted) {
    Prediction prediction = predicted;
    const Result<Device> device = cost_models.devices.find(predicted.gpu);
    const Status job =
        device ? set_job(request.job, *device, request.prices.of(device->name), prediction) : Status(device.error());
    if (!job.ok()) return bad_record(job.error().within(fmt::format("record {}", predicted.id)));
    if (handlers.prediction) handlers.prediction(prediction);
    answer.predictions.push_back(std::move(prediction));
  };
  const RecordHandlers counting{.prediction = predicted_record, .bad_record = bad_record};
  if (const Status status =
          predict_records(request.file, gpu, cost_models, counting, request.memory, control, request.sizes);
      !status.ok()) {
    return status.error();
  }
  if (answer.predictions.empty() && answer.bad == 0) {
    return Error{"holds no run records", request.file,
                 "its records are op samples or the like: `forerun data summary` tells; a run record is made by "
                 "forerun.capture"};
  }
  // A measured record is compared after it was predicted. Recorded on another GPU than asked for: nothing to compare.
  if (!request.errors || gpu || request.sizes.any()) return answer;
  Result<std::vector<ErrorSample>> errors = measure_errors(request.file, answer.predictions);
  if (!errors) return errors.error();
  answer.errors = std::move(*errors);
  return answer;
}

}  // namespace forerun
