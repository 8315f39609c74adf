#include "api/predict.h"

#include "predict/host_remedies.h"

namespace forerun {

Result<PredictAnswer> predict_built(const PredictRequest& request, RunBuilder* build, const CostModels& cost_models,
                                    const WorkControl& control) {
  Work work(control);
  if (const Status status = check_memory(request.memory); !status.ok()) return status.error();
  if (const Status status = check_job_length(request.job); !status.ok()) return status.error();
  const Result<Device> device = asked_gpu(request.gpu, cost_models);
  if (!device) return device.error();
  const auto price = price_of_run(request.prices, *device, request.job);
  if (!price) return price.error();
  const Result<TrainingRun> run = build(request.model, *device);
  if (!run) return run.error();
  if (request.built) request.built();
  if (const Status status = work.check(); !status.ok()) return status.error();
  PredictAnswer answer{.prediction = predict(*run, *device, cost_models, request.memory), .memory_log = std::nullopt};
  if (request.remedies) {
    for (HostRemedy& remedy : rebuilt_remedies(request.model, build, *device, cost_models, answer.prediction)) {
      answer.prediction.remedies.push_back(std::move(remedy));
    }
  }
  if (const Status status = set_job(request.job, *device, *price, answer.prediction); !status.ok()) {
    return status.error();
  }
  if (const Status status = work.check(); !status.ok()) return status.error();
  if (!request.memory_log) return answer;
  Result<PredictedLog> log = predicted_log(*run, *device, cost_models.workspaces, request.memory);
  if (!log) return log.error();
  answer.memory_log = std::move(*log);
  if (const Status status = work.check(); !status.ok()) return status.error();
  return answer;
}

}  // namespace forerun
