#include "api/schedule.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <thread>

#include "api/predict.h"
#include "cluster/policies.h"
#include "cluster/sources/sources.h"

namespace forerun {
namespace {

using cluster::Durations;
using cluster::Metrics;

// One simulation: a policy with one seed, or with true durations for comparison.
struct Simulated {
  size_t policy = 0;
  int64_t run = 0;  // -1: with perfect knowledge
};

struct TaskResult {
  Metrics metrics;
  cluster::Schedule schedule;
  double seconds = 0;
};

class Simulations {
 public:
  Simulations(const ScheduleRequest& request, const ScheduleAnswer& answer) : request_(request), answer_(answer) {
    const bool random = cluster::is_random(request.predictor) || request.simulation.failures.mean_hours_between > 0;
    const int64_t runs = random ? request.repeat : 1;
    for (size_t policy = 0; policy < request.policies.size(); ++policy) {
      for (int64_t run = 0; run < runs; ++run) tasks_.push_back({policy, run});
      if (request.predictor != "perfect") tasks_.push_back({policy, -1});
    }
    results_.resize(tasks_.size());
  }

  void run() {
    std::atomic<size_t> next = 0;
    const auto work = [&] {
      for (size_t i = next++; i < tasks_.size(); i = next++) results_[i] = simulate(tasks_[i]);
    };
    std::vector<std::thread> others;
    const size_t threads = std::min(request_.threads, tasks_.size());
    for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
    work();
    for (std::thread& thread : others) thread.join();
  }

  std::vector<PolicyOutcome> outcomes() {
    std::vector<PolicyOutcome> outcomes(request_.policies.size());
    for (size_t i = 0; i < tasks_.size(); ++i) {
      PolicyOutcome& outcome = outcomes[tasks_[i].policy];
      outcome.policy = request_.policies[tasks_[i].policy];
      outcome.seconds += results_[i].seconds;
      if (tasks_[i].run < 0) {
        outcome.perfect = results_[i].metrics;
        continue;
      }
      outcome.runs.push_back(results_[i].metrics);
      if (tasks_[i].run == 0) outcome.first = std::move(results_[i].schedule);
    }
    return outcomes;
  }

 private:
  TaskResult simulate(const Simulated& task) const {
    const cluster::Workload& workload = answer_.workload;
    const uint64_t seed = request_.seed + static_cast<uint64_t>(std::max<int64_t>(task.run, 0));
    auto policy = cluster::make_policy(request_.policies[task.policy]);
    cluster::SimulationOptions options = request_.simulation;
    options.failures.seed = seed;
    options.keep_segments = request_.keep_schedules && task.run == 0;
    std::optional<Durations> predicted;
    if (task.run >= 0 && request_.predictor != "perfect") {
      predicted = *cluster::predict_durations(workload, request_.predictor, seed);
    }
    const auto begin = std::chrono::steady_clock::now();
    TaskResult result;
    result.schedule =
        cluster::simulate(workload, answer_.cluster, predicted ? *predicted : workload.truth, **policy, options);
    result.metrics = cluster::metrics_of(result.schedule, workload, answer_.cluster);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!options.keep_segments) result.schedule = {};
    return result;
  }

  const ScheduleRequest& request_;
  const ScheduleAnswer& answer_;
  std::vector<Simulated> tasks_;
  std::vector<TaskResult> results_;
};

Status check(const ScheduleRequest& request) {
  if (request.policies.empty()) return Error{"no policy is named", "--policy", "give one, as --policy fifo"};
  for (const std::string& policy : request.policies) {
    if (const auto made = cluster::make_policy(policy); !made) return made.error();
  }
  const cluster::Workload none;
  if (const auto made = cluster::predict_durations(none, request.predictor, 1); !made) return made.error();
  if (request.file.empty() == !request.synthetic.has_value()) {
    return Error{request.file.empty() ? "no file of jobs is named" : "both a file and --synthetic are given", "",
                 "give one of the two, as `forerun schedule jobs.csv --gpus 8 --policy fifo`"};
  }
  return {};
}

// Answers what a step takes by predicting it, each configuration once.
class PredictedSteps {
 public:
  Result<cluster::Time> operator()(const cluster::StepQuestion& question) {
    const auto known = steps_.find(question);
    if (known != steps_.end()) return known->second;
    if (!knowledge_) {
      auto loaded = load_knowledge();
      if (!loaded) return loaded.error();
      knowledge_ = std::make_shared<Knowledge>(*std::move(loaded));
    }
    const auto device = knowledge_->devices.find(question.gpu_type);
    if (!device) return device.error();
    ModelRequest request;
    request.model = question.model;
    if (question.batch > 0) request.batch = question.batch;
    if (!question.precision.empty()) {
      const auto precision = precision_named(question.precision);
      if (!precision)
        return Error{fmt::format("no precision is called '{}'", question.precision), "", "write amp_bf16"};
      request.setup.precision = *precision;
    }
    const auto run = build_run(request, *device);
    if (!run) return run.error();
    const Prediction prediction = predict(*run, *device, *knowledge_);
    const cluster::Time step = prediction.fits ? prediction.times.iteration : cluster::kNever;
    steps_.emplace(question, step);
    return step;
  }

 private:
  std::shared_ptr<Knowledge> knowledge_;  // read when first needed
  std::map<cluster::StepQuestion, cluster::Time> steps_;
};

void describe(ScheduleReport& report, const cluster::LoadedJobs& loaded) {
  report.filtered = loaded.filtered;
  report.passed_over = loaded.passed_over;
  report.faults = loaded.faults;
  report.real = loaded.real;
  report.made = loaded.made;
}

}  // namespace

Result<ScheduleAnswer> schedule(const ScheduleRequest& request) {
  if (Status status = check(request); !status) return status.error();
  ScheduleAnswer answer;
  std::string gpus = request.gpus;
  if (gpus.empty() && request.synthetic) gpus = std::to_string(request.synthetic->gpus);
  if (gpus.empty()) return Error{"the cluster has no size", "--gpus", "write 480, or a100=10,v100=20"};
  auto cluster = cluster::parse_cluster(gpus);
  if (!cluster) return cluster.error();
  answer.cluster = *std::move(cluster);
  for (cluster::GpuPool& pool : answer.cluster.pools) {
    pool.gpus_per_node = request.gpus_per_node;
    pool.nodes_per_rack = request.nodes_per_rack;
  }
  if (request.synthetic) {
    answer.workload = synthetic_jobs(*request.synthetic);
    answer.report.source = "a made-up workload";
    answer.report.made = {"everything: drawn at random"};
    for (cluster::JobIndex job = 0; job < answer.workload.jobs.size(); ++job) {
      if (can_ever_run(answer.workload.jobs[job], answer.workload.truth, job, answer.cluster)) continue;
      return Error{"some made-up jobs are larger than the cluster", "--gpus", "leave --gpus out, or give as many"};
    }
  } else {
    cluster::LoadOptions options = request.load;
    options.cluster = &answer.cluster;
    options.step_times = PredictedSteps();
    auto loaded = load_jobs(request.file, request.format, options);
    if (!loaded) return loaded.error();
    describe(answer.report, *loaded);
    answer.workload = std::move(loaded->workload);
    answer.report.source = request.file;
  }
  answer.report.gpus = gpus;
  answer.report.predictor = request.predictor;
  answer.report.jobs = static_cast<int64_t>(answer.workload.jobs.size());
  Simulations simulations(request, answer);
  simulations.run();
  answer.report.outcomes = simulations.outcomes();
  return answer;
}

}  // namespace forerun
