#include "api/predict.h"

namespace forerun {

Result<PredictAnswer> predict(const PredictRequest& request, const CostModels& cost_models,
                              const WorkControl& control) {
  Work work(control);
  if (const Status status = check_memory(request.memory); !status.ok()) return status.error();
  const Result<Device> device = cost_models.devices.find(request.gpu.empty() ? kDefaultGpu : request.gpu);
  if (!device) return device.error();
  const Result<TrainingRun> run = build_run(request.model, *device);
  if (!run) return run.error();
  if (const Status status = work.check(); !status.ok()) return status.error();
  PredictAnswer answer{.prediction = predict(*run, *device, cost_models, request.memory), .memory_log = std::nullopt};
  if (const Status status = work.check(); !status.ok()) return status.error();
  if (!request.memory_log) return answer;
  Result<PredictedLog> log = predicted_log(*run, *device, cost_models.workspaces, request.memory);
  if (!log) return log.error();
  answer.memory_log = std::move(*log);
  if (const Status status = work.check(); !status.ok()) return status.error();
  return answer;
}

Result<PredictRecordsAnswer> predict_records(const PredictRecordsRequest& request, const CostModels& cost_models,
                                             const RecordHandlers& handlers, const WorkControl& control) {
  if (const Status status = check_memory(request.memory); !status.ok()) return status.error();
  std::optional<Device> gpu;
  if (!request.gpu.empty()) {
    Result<Device> found = cost_models.devices.find(request.gpu);
    if (!found) return found.error();
    gpu = std::move(*found);
  }
  PredictRecordsAnswer answer;
  const RecordHandlers counting{.prediction =
                                    [&](const Prediction& prediction) {
                                      if (handlers.prediction) handlers.prediction(prediction);
                                      answer.predictions.push_back(prediction);
                                    },
                                .bad_record =
                                    [&](const Error& error) {
                                      ++answer.bad;
                                      if (handlers.bad_record) handlers.bad_record(error);
                                    }};
  if (const Status status = predict_records(request.file, gpu, cost_models, counting, request.memory, control);
      !status.ok()) {
    return status.error();
  }
  if (answer.predictions.empty() && answer.bad == 0) {
    return Error{"holds no run records", request.file,
                 "its records are op samples or the like: `forerun data summary` tells; a run record is made by "
                 "forerun.capture"};
  }
  // A measured record is compared after it was predicted. Recorded on another GPU than asked for: nothing to compare.
  if (!request.errors || gpu) return answer;
  Result<std::vector<ErrorSample>> errors = measure_errors(request.file, answer.predictions);
  if (!errors) return errors.error();
  answer.errors = std::move(*errors);
  return answer;
}

}  // namespace forerun
