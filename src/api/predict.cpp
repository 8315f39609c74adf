#include "api/predict.h"

#include "base/parallel.h"
#include "derive/compile_support.h"
#include "predict/host_remedies.h"

namespace forerun {
namespace {

Result<SharedTrainingRun> shared(Result<TrainingRun> run) {
  if (!run) return run.error();
  return std::make_shared<const TrainingRun>(std::move(*run));
}

}  // namespace

Result<PredictAnswer> predict_built(const PredictRequest& request, const RunSource& build,
                                    const CostModels& cost_models, const WorkControl& control) {
  Work work(control);
  if (const Status status = check_memory(request.memory); !status.ok()) return status.error();
  if (const Status status = check_job_length(request.job); !status.ok()) return status.error();
  const Result<Device> device = asked_gpu(request.gpu, cost_models);
  if (!device) return device.error();
  const auto price = price_of_run(request.prices, *device, request.job);
  if (!price) return price.error();
  const CompileMode mode = request.eager_beside ? request.model.setup.compile : CompileMode::none;
  ModelRequest asked = request.model;
  if (request.eager_beside) asked.setup.compile = CompileMode::none;
  if (const Status status = check_compiled(request.model.setup, request.memory); !status.ok()) return status.error();
  const Result<SharedTrainingRun> run = build(asked, *device);
  if (!run) return run.error();
  if (request.built) request.built();
  if (const Status status = work.check(); !status.ok()) return status.error();
  PredictAnswer answer;
  Result<SharedTrainingRun> compiled = Error{"was not compiled", "", ""};
  const size_t sides = mode == CompileMode::none ? 1 : 2;
  parallel_for(sides, sides, [&](size_t side) {
    if (side == 0) {
      const unsigned threads = (*run)->graph.op_count() <= request.most_ops_on_one_thread ? 1 : 2;
      answer.prediction = predict(**run, *device, cost_models, request.memory, threads);
      return;
    }
    TrainingRun eager = **run;
    eager.setup.compile = mode;
    compiled = derive::changes_when_traced(eager.input) ? build(request.model, *device)
                                                        : shared(compiled_run(std::move(eager), *device));
    if (compiled) answer.compiled = predict_compiled(**compiled, *device, cost_models, request.memory);
  });
  if (sides == 2 && !compiled) return compiled.error();
  if (request.remedies) {
    for (HostRemedy& remedy : rebuilt_remedies(asked, build, *device, cost_models, answer.prediction)) {
      answer.prediction.remedies.push_back(std::move(remedy));
    }
  }
  if (const Status status = set_job(request.job, *device, *price, answer.prediction); !status.ok()) {
    return status.error();
  }
  if (answer.compiled) {
    const Status status = set_job(request.job, *device, *price, answer.compiled->prediction);
    if (!status.ok()) return status.error();
  }
  if (const Status status = work.check(); !status.ok()) return status.error();
  if (!request.memory_log) return answer;
  Result<PredictedLog> log = predicted_log(**run, *device, cost_models.workspaces, request.memory);
  if (!log) return log.error();
  answer.memory_log = std::move(*log);
  if (answer.compiled) {
    Result<PredictedLog> of_compiled = predicted_log(**compiled, *device, cost_models.workspaces, request.memory);
    if (!of_compiled) return of_compiled.error();
    answer.compiled->memory_log = std::move(*of_compiled);
  }
  if (const Status status = work.check(); !status.ok()) return status.error();
  return answer;
}

}  // namespace forerun
