#include "api/schedule.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "api/schedule_records.h"
#include "base/data_dir.h"
#include "cluster/policies.h"
#include "cluster/sources/sources.h"
#include "device/catalogue.h"

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
  Simulations(const ScheduleRequest& request, const ScheduleAnswer& answer, const cluster::MeasuredPredictor* measured)
      : request_(request), answer_(answer), measured_(measured) {
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
      predicted = *cluster::predict_durations(workload, request_.predictor, seed, measured_);
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
  const cluster::MeasuredPredictor* measured_;  // null: the predictor is built in
  std::vector<Simulated> tasks_;
  std::vector<TaskResult> results_;
};

Status check(const ScheduleRequest& request) {
  if (request.policies.empty()) return Error{"no policy is named", "--policy", "give one, as --policy fifo"};
  for (const std::string& policy : request.policies) {
    if (const auto made = cluster::make_policy(policy); !made) return made.error();
  }
  if (cluster::is_built_in(request.predictor)) {
    if (const auto made = cluster::predict_durations({}, request.predictor, 1); !made) return made.error();
  } else if (const auto errors = find_measured_errors(request.predictor); !errors) {
    return errors.error();
  }
  if (request.file.empty() == !request.synthetic.has_value()) {
    return Error{request.file.empty() ? "no file of jobs is named" : "both a file and --synthetic are given", "",
                 "give one of the two, as `forerun schedule jobs.csv --gpus 8 --policy fifo`"};
  }
  return {};
}

void describe(ScheduleReport& report, const cluster::LoadedJobs& loaded) {
  report.filtered = loaded.filtered;
  report.passed_over = loaded.passed_over;
  report.faults = loaded.faults;
  report.real = loaded.real;
  report.made = loaded.made;
}

Result<cluster::Cluster> build_cluster(const ScheduleRequest& request, const std::string& gpus) {
  if (gpus.empty()) return Error{"the cluster has no size", "--gpus", "write 480, or a100=10,v100=20"};
  auto cluster = cluster::parse_cluster(gpus);
  if (!cluster) return cluster;
  for (cluster::GpuPool& pool : cluster->pools) {
    pool.gpus_per_node = request.gpus_per_node;
    pool.nodes_per_rack = request.nodes_per_rack;
  }
  return cluster;
}

// How much memory GPUs have, of types that are known devices: jobs that need more go elsewhere.
Status add_memory(cluster::Cluster& cluster) {
  const auto data = data_dir();
  if (!data) return data.error();
  const auto devices = load_devices(*data / "devices");
  if (!devices) return devices.error();
  for (cluster::GpuPool& pool : cluster.pools) {
    if (const auto device = devices->find(pool.type)) pool.memory = device->memory;
  }
  return {};
}

Status make_up_jobs(const cluster::SyntheticOptions& options, ScheduleAnswer& answer) {
  answer.workload = synthetic_jobs(options);
  answer.report.source = "a made-up workload";
  answer.report.made = {"everything: drawn at random"};
  for (cluster::JobIndex job = 0; job < answer.workload.jobs.size(); ++job) {
    if (can_ever_run(answer.workload.jobs[job], answer.workload.truth, job, answer.cluster)) continue;
    return Error{"some made-up jobs are larger than the cluster", "--gpus", "leave --gpus out, or give as many"};
  }
  return {};
}

// Reads the jobs of a file. `steps` predicts those that name a model.
Status read_jobs(const ScheduleRequest& request, StepPredictor& steps, ScheduleAnswer& answer) {
  cluster::LoadOptions options = request.load;
  options.cluster = &answer.cluster;
  answer.report.source = request.file;
  if (request.format == kRecordsFormat) {
    auto records = load_record_jobs(request.file, options, request.seed);
    if (!records) return records.error();
    describe(answer.report, records->loaded);
    answer.workload = std::move(records->loaded.workload);
    if (request.predictor != "hybrid") return {};
    return steps.add_records(records->files, answer.workload.configurations, request.predicting);
  }
  options.step_times = steps;
  auto loaded = load_jobs(request.file, request.format, options);
  if (!loaded) return loaded.error();
  describe(answer.report, *loaded);
  answer.workload = std::move(loaded->workload);
  return {};
}

}  // namespace

Result<ScheduleAnswer> schedule(const ScheduleRequest& request) {
  if (Status status = check(request); !status) return status.error();
  ScheduleAnswer answer;
  const bool sized = request.gpus.empty() && request.synthetic;
  answer.report.gpus = sized ? std::to_string(request.synthetic->gpus) : request.gpus;
  auto cluster = build_cluster(request, answer.report.gpus);
  if (!cluster) return cluster.error();
  answer.cluster = *std::move(cluster);
  const bool described = !request.synthetic && (request.format == "csv" || request.format == kRecordsFormat);
  if (described) {  // the only sources that know how much memory jobs need
    if (Status status = add_memory(answer.cluster); !status) return status.error();
  }
  std::shared_ptr<cluster::CommunicationModel> communication;
  if (request.format == "csv" && !request.synthetic) {  // the only source that knows what gangs say to each other
    auto links = communication_of(answer.cluster, request.network);
    if (!links) return links.error();
    communication = std::make_shared<cluster::CommunicationModel>(*std::move(links));
  }
  StepPredictor steps(answer.cluster, communication);
  const Status found = request.synthetic ? make_up_jobs(*request.synthetic, answer) : read_jobs(request, steps, answer);
  if (!found) return found.error();
  if (!answer.workload.traffic.empty()) {
    answer.workload.communication = communication;
    answer.report.made.push_back(
        fmt::format("communication of gangs: modelled, {} between nodes", communication->pools.front().between.name));
  }
  answer.report.predictor = request.predictor;
  answer.report.jobs = static_cast<int64_t>(answer.workload.jobs.size());
  std::optional<PredictorAnswer> measured;
  if (!cluster::is_built_in(request.predictor)) {
    auto made = measured_predictor(request.predictor, answer.workload, answer.cluster, steps);
    if (!made) return made.error();
    measured = *std::move(made);
    answer.report.predictor_source = measured->source;
  }
  Simulations simulations(request, answer, measured ? &measured->predictor : nullptr);
  simulations.run();
  answer.report.outcomes = simulations.outcomes();
  return answer;
}

}  // namespace forerun
