#include "api/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>

#include "api/schedule_records.h"
#include "base/data_dir.h"
#include "base/parallel.h"
#include "cluster/sources/cell_values.h"
#include "cluster/sources/sources.h"
#include "device/catalogue.h"

namespace forerun {
namespace {

using cluster::Durations;
using cluster::Metrics;

constexpr int64_t kMostRepeats = 100'000;

struct TaskResult {
  SimulatedRun run;
  cluster::Schedule::Cut cut = cluster::Schedule::Cut::none;
  std::optional<Error> fault;  // where the policy cut it
  cluster::Schedule schedule;
  double seconds = 0;
};

class Simulations {
 public:
  Simulations(const ScheduleRequest& request, const ScheduleAnswer& answer, std::vector<cluster::Time> own,
              const WorkControl& control)
      : request_(request),
        answer_(answer),
        work_(control),
        own_(std::move(own)),
        perfect_(request.predictor.kind == cluster::PredictorKind::perfect) {
    const bool random = request.predictor.is_random() || request.simulation.failures.mean_hours_between > 0;
    plan_.runs = random ? request.repeat : 1;
    plan_.compared = !perfect_;
    for (const cluster::PolicySpec& policy : request.policies) plan_.policies.push_back(policy.text);
    work_.begin("jobs ended", static_cast<int64_t>(answer.workload.jobs.size() * plan_.size()));
  }

  [[nodiscard]] const SimulationPlan& plan() const { return plan_; }

  // All of them. An Error where one did not come to its end.
  Result<std::vector<PolicyOutcome>> run() {
    std::vector<TaskResult> results(plan_.size());
    const size_t threads = std::max<size_t>(request_.threads, 1);
    parallel_for(results.size(), threads, [&](size_t i) {
      if (work_.goes_on()) results[i] = simulate(plan_[i]);
    });
    if (Status status = work_.status(); !status) return status.error();
    std::vector<SimulatedRun> runs;
    for (size_t i = 0; i < results.size(); ++i) {
      if (Status status = check(plan_[i], results[i]); !status) return status.error();
      runs.push_back(std::move(results[i].run));
    }
    std::vector<PolicyOutcome> outcomes = outcomes_of(plan_, std::move(runs));
    for (size_t i = 0; i < results.size(); ++i) {
      PolicyOutcome& outcome = outcomes[plan_[i].policy];
      outcome.seconds += results[i].seconds;
      if (plan_[i].run == 0) outcome.first = std::move(results[i].schedule);
    }
    return outcomes;
  }

  Result<SimulatedRun> run_one(size_t number) {
    TaskResult result = simulate(plan_[number]);
    if (Status status = work_.status(); !status) return status.error();
    if (Status status = check(plan_[number], result); !status) return status.error();
    return std::move(result.run);
  }

  // What is predicted with a seed.
  [[nodiscard]] Durations predicted(uint64_t seed) const {
    return predict_durations(answer_.workload, request_.predictor, seed, own_);
  }

 private:
  [[nodiscard]] Status check(const SimulationPlan::One& task, const TaskResult& result) const {
    const Metrics& metrics = result.run.metrics;
    const cluster::PolicySpec& policy = request_.policies[task.policy];
    if (result.cut == cluster::Schedule::Cut::policy) return result.fault->within(named(task));
    if (!policy.file.empty() && result.cut == cluster::Schedule::Cut::none && metrics.unfinished > 0) {
      return Error{fmt::format("the policy left {} of {} jobs waiting for ever", metrics.unfinished,
                               metrics.jobs + metrics.unfinished),
                   named(task), "start every job, or ask with wake_at() to be called again"};
    }
    const std::string ended = fmt::format("{} of {} jobs had ended", metrics.jobs, metrics.jobs + metrics.unfinished);
    if (result.cut == cluster::Schedule::Cut::end_of_time) {
      return Error{"the jobs take longer than 292 simulated years, as far as nanoseconds go; " + ended, named(task),
                   "give more --gpus, or fewer or shorter jobs"};
    }
    if (result.cut == cluster::Schedule::Cut::failures) {
      return Error{fmt::format("the cluster failed {} times, and {}", metrics.failures, ended), "--failure-hours",
                   "give more hours: between failures next to nothing gets done"};
    }
    return {};
  }

  [[nodiscard]] std::string named(const SimulationPlan::One& task) const {
    return fmt::format("--policy {}", request_.policies[task.policy].text);
  }

  TaskResult simulate(const SimulationPlan::One& task) {
    const cluster::Workload& workload = answer_.workload;
    const uint64_t seed = request_.seed + static_cast<uint64_t>(std::max<int64_t>(task.run, 0));
    const auto policy = cluster::make_policy(request_.policies[task.policy]);
    cluster::SimulationOptions options = request_.simulation;
    options.failures.seed = seed;
    options.work = &work_;
    options.keep_segments = request_.keep_schedules && task.run == 0;
    std::optional<Durations> predicted;
    if (task.run >= 0 && !perfect_) predicted = this->predicted(seed);
    const auto begin = std::chrono::steady_clock::now();
    TaskResult result;
    result.schedule =
        cluster::simulate(workload, answer_.cluster, predicted ? *predicted : workload.truth, *policy, options);
    result.cut = result.schedule.cut;
    result.fault = result.schedule.fault;
    if (result.cut == cluster::Schedule::Cut::stopped) return {};
    result.run.metrics = cluster::metrics_of(result.schedule, workload, answer_.cluster);
    for (const cluster::BreakdownBy by : request_.by) {
      if (task.run >= 0) result.run.breakdowns.push_back({by, breakdown_of(result.schedule, workload, by)});
    }
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!options.keep_segments) result.schedule = {};
    return result;
  }

  const ScheduleRequest& request_;
  const ScheduleAnswer& answer_;
  Work work_;
  std::vector<cluster::Time> own_;  // what the predictor really predicts, as predict_durations takes it
  bool perfect_;
  SimulationPlan plan_;
};

// Also where a number is none.
Status check_range(double value, double least, double most, const char* option) {
  if (value >= least && value <= most) return {};
  return Error{fmt::format("{} is out of range", value), option, fmt::format("give {} to {}", least, most)};
}

Status check_times(const cluster::SimulationOptions& options) {
  const cluster::Time longest = cluster::time_from_seconds(cluster::kMostSeconds);
  for (const auto& [time, option] :
       {std::pair(options.restart_cost, "--restart-cost"), std::pair(options.failures.repair, "--repair-hours"),
        std::pair(options.failures.checkpoint_every, "--checkpoint")}) {
    if (time.value >= 0 && time <= longest) continue;
    return Error{"the time is negative or beyond 127 years", option, "give a time from 0 on"};
  }
  return {};
}

Status check_simulation(const ScheduleRequest& request) {
  const cluster::SimulationOptions& options = request.simulation;
  for (const Status& status :
       {check_range(options.node_loss, 0, 0.99, "--node-loss"), check_range(options.rack_loss, 0, 0.99, "--rack-loss"),
        check_range(options.failures.mean_hours_between, 0, 1e9, "--failure-hours"),
        check_range(request.network.oversubscription, 1, 1000, "--oversubscription"), check_times(options)}) {
    if (!status) return status;
  }
  return {};
}

// Priorities are refused where the policy would pass over them.
Status check_priorities(const ScheduleRequest& request, const cluster::Workload& workload) {
  const auto differs = [](const cluster::Job& job) { return job.priority != 0; };
  const auto job = std::find_if(workload.jobs.begin(), workload.jobs.end(), differs);
  if (job == workload.jobs.end()) return {};
  for (const cluster::PolicySpec& policy : request.policies) {
    if (policy.entry->by_priority) continue;
    const std::string name = workload.name_of(static_cast<cluster::JobIndex>(job - workload.jobs.begin()));
    return Error{fmt::format("job '{}' has a priority, which the policy '{}' does not look at", name, policy.text),
                 request.file, "take the column priority out, or use fifo, sjf, srsf, edf, easy or conservative"};
  }
  return {};
}

Status check(const ScheduleRequest& request) {
  if (request.policies.empty()) return Error{"no policy is named", "--policy", "give one, as --policy fifo"};
  if (Status status = check_simulation(request); !status) return status;
  if (request.repeat < 1 || request.repeat > kMostRepeats) {
    return Error{fmt::format("{} repetitions are none", request.repeat), "--repeat",
                 fmt::format("give 1 to {}", kMostRepeats)};
  }
  if (request.gpus_per_node < 0 || request.nodes_per_rack < 0) {
    return Error{"a node or rack of a negative size", "--gpus-per-node, --nodes-per-rack", "give 1 or more"};
  }
  if (request.synthetic) {
    if (Status status = cluster::check_synthetic(*request.synthetic); !status) return status;
  }
  if (request.cluster && request.cluster->gpus() < 1) {
    return Error{"the cluster has no GPUs", "--gpus", "write 480, or a100=10,v100=20"};
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
  report.unused = loaded.unused;
}

Result<cluster::Cluster> build_cluster(const ScheduleRequest& request) {
  if (!request.cluster && !request.synthetic) {
    return Error{"the cluster has no size", "--gpus", "write 480, or a100=10,v100=20"};
  }
  auto cluster = request.cluster ? Result<cluster::Cluster>(*request.cluster)
                                 : cluster::parse_cluster(std::to_string(request.synthetic->gpus));
  if (!cluster) return cluster;
  for (cluster::GpuPool& pool : cluster->pools) {
    pool.gpus_per_node = request.gpus_per_node;
    pool.nodes_per_rack = request.nodes_per_rack;
  }
  return cluster;
}

// Whether the jobs may say what they train: only then is anything predicted, and known how much memory they need.
bool describes_training(const ScheduleRequest& request) {
  return !request.synthetic && request.format.describes_training();
}

// What predictions draw on where they are for a machine that was calibrated; null: there is none. One that is named is read
// even where no job can be predicted, so that a file at fault is refused.
Result<std::shared_ptr<const CostModels>> calibrated_models(const ScheduleRequest& request) {
  std::shared_ptr<const CostModels> none;
  if (request.machine == kNoMachine) return none;
  if (request.machine.empty() && (!describes_training(request) || configured_machine().empty())) return none;
  auto loaded = load_cost_models_for(request.machine);
  if (!loaded) return loaded.error();
  return std::make_shared<const CostModels>(*std::move(loaded));
}

// GPUs and links that are known: those of the data folder, and the GPU of a machine that was calibrated.
Result<DeviceCatalogue> known_devices(const CostModels* calibrated) {
  if (calibrated != nullptr) return calibrated->devices;
  const auto data = data_dir();
  return data ? load_devices(*data / "devices") : Result<DeviceCatalogue>(data.error());
}

// How much memory GPUs have, of types that are known devices: jobs that need more go elsewhere.
void add_memory(const DeviceCatalogue& devices, cluster::Cluster& cluster) {
  for (cluster::GpuPool& pool : cluster.pools) {
    if (const auto device = devices.find(pool.type)) pool.memory = device->memory;
  }
}

// What predictions of jobs owe to the machine, and whether one that was named went without use.
std::vector<std::string> calibration_of(const ScheduleRequest& request, const StepPredictor& steps,
                                        const StepPredictor& asked) {
  std::set<std::string> told = steps.calibrations();
  told.insert(asked.calibrations().begin(), asked.calibrations().end());
  const bool named = !request.machine.empty() && request.machine != kNoMachine;
  if (told.empty() && named) told.insert(request.machine + ": not used, since Forerun predicted no job");
  return {told.begin(), told.end()};
}

Status make_up_jobs(const cluster::SyntheticOptions& options, ScheduleAnswer& answer, const WorkControl& control) {
  Work work(control, "jobs made up", options.jobs);
  answer.workload = synthetic_jobs(options, &work);
  if (Status status = work.status(); !status) return status;
  answer.report.source = "a made-up workload";
  answer.report.made = {"everything: drawn at random"};
  for (cluster::JobIndex job = 0; job < answer.workload.jobs.size(); ++job) {
    if (can_ever_run(answer.workload.jobs[job], answer.workload.truth, job, answer.cluster)) continue;
    return Error{"some made-up jobs are larger than the cluster", "--gpus", "leave --gpus out, or give as many"};
  }
  return {};
}

// Reads the jobs of a file. `steps` predicts those that name a model and no duration, `asked` what the policy is told of
// measured runs.
Status read_jobs(const ScheduleRequest& request, StepPredictor& steps, StepPredictor& asked, ScheduleAnswer& answer,
                 const WorkControl& control) {
  Work work(control, "rows read");
  cluster::LoadOptions options = request.load;
  options.work = &work;
  options.cluster = &answer.cluster;
  answer.report.source = request.file;
  if (request.format.source == nullptr) {
    auto records = load_record_jobs(request.file, options, request.seed);
    if (!records) return records.error();
    describe(answer.report, records->loaded);
    answer.workload = std::move(records->loaded.workload);
    const bool is_asked = request.predictor.kind == cluster::PredictorKind::hybrid || asked.has_oracle();
    if (!is_asked) return {};
    return asked.add_records(records->files, answer.workload.configurations, control);
  }
  options.step_times = steps;
  auto loaded = load_jobs(request.file, *request.format.source, options);
  if (!loaded) return loaded.error();
  describe(answer.report, *loaded);
  answer.workload = std::move(loaded->workload);
  return {};
}

std::string limits_in_words(const cluster::Workload& workload) {
  const auto stated = static_cast<int64_t>(workload.limits.size()) -
                      std::count(workload.limits.begin(), workload.limits.end(), cluster::kNever);
  const std::string text = fmt::format("{} of {} jobs state a time limit", stated, workload.jobs.size());
  return static_cast<size_t>(stated) == workload.jobs.size() ? text : text + "; the others: the longest of them";
}

}  // namespace

Result<JobFormat> parse_job_format(const std::string& text) {
  if (text == kRecordsFormat) return JobFormat{nullptr};
  const auto source = cluster::find_source(text, {kRecordsFormat});
  if (!source) return source.error();
  return JobFormat{*source};
}

Result<cluster::Time> parse_when(const std::string& text, const std::string& option) {
  if (const auto date = cluster::parse_date(text)) return *date;
  if (const auto seconds = cluster::parse_seconds(text)) return *seconds;
  return Error{fmt::format("'{}' is no date", text), option, "write 2017-10-09, 2017-10-09T12:00:00, or seconds"};
}

namespace {

// A schedule before anything is simulated.
struct PreparedSchedule {
  ScheduleAnswer answer;
  std::vector<cluster::Time> own;  // what the predictor really predicts
};

Result<PreparedSchedule> prepare(const ScheduleRequest& request, const WorkControl& control) {
  if (Status status = check(request); !status) return status.error();
  PreparedSchedule prepared;
  ScheduleAnswer& answer = prepared.answer;
  auto cluster = build_cluster(request);
  if (!cluster) return cluster.error();
  answer.report.gpus = cluster->text;
  answer.cluster = *std::move(cluster);
  const auto calibrated = calibrated_models(request);
  if (!calibrated) return calibrated.error();
  std::shared_ptr<cluster::CommunicationModel> communication;
  if (describes_training(request)) {
    const auto devices = known_devices(calibrated->get());
    if (!devices) return devices.error();
    add_memory(*devices, answer.cluster);
    if (request.format.source != nullptr) {  // measured runs say nothing of what gangs say to each other
      auto links = communication_of(answer.cluster, request.network, *devices);
      if (!links) return links.error();
      communication = std::make_shared<cluster::CommunicationModel>(*std::move(links));
    }
  }
  StepPredictor steps(answer.cluster, communication, *calibrated);
  // A learned predictor says what it learned, whatever the machine.
  StepPredictor asked = request.oracle ? StepPredictor(answer.cluster, communication, nullptr, request.oracle) : steps;
  const Status found = request.synthetic ? make_up_jobs(*request.synthetic, answer, control)
                                         : read_jobs(request, steps, asked, answer, control);
  if (!found) return found.error();
  if (request.draw) {
    const auto made = draw(answer.workload, answer.cluster, *request.draw);
    if (!made) return made.error();
    answer.report.made.insert(answer.report.made.end(), made->begin(), made->end());
  }
  if (Status status = check_priorities(request, answer.workload); !status) return status.error();
  if (Status status = check_quotas(request.simulation.quotas, answer.workload); !status) return status.error();
  if (!answer.workload.traffic.empty()) {
    answer.workload.communication = communication;
    answer.report.made.push_back(
        fmt::format("communication of gangs: modelled, {} between nodes", communication->pools.front().between.name));
  }
  answer.report.predictor = request.predictor.name;
  answer.report.jobs = static_cast<int64_t>(answer.workload.jobs.size());
  if (request.predictor.kind == cluster::PredictorKind::stated_limits) {
    if (answer.workload.limits.empty()) {
      return Error{"no job states a time limit", answer.report.source,
                   "use --predictor limits:3 for made-up ones; docs/jobs.md says which files have them"};
    }
    answer.report.predictor_source = limits_in_words(answer.workload);
  }
  PredictorAnswer predictions;
  if (request.predictor.is_asked()) {
    auto own = own_predictions(request.predictor, answer.workload, answer.cluster, asked, control);
    if (!own) return own.error();
    predictions = *std::move(own);
    answer.report.predictor_source = predictions.source;
  }
  prepared.own = std::move(predictions.own);
  answer.report.calibration = calibration_of(request, steps, asked);
  return prepared;
}

}  // namespace

Result<ScheduleAnswer> schedule(const ScheduleRequest& request, const WorkControl& control) {
  Result<PreparedSchedule> prepared = prepare(request, control);
  if (!prepared) return prepared.error();
  ScheduleAnswer& answer = prepared->answer;
  Simulations simulations(request, answer, std::move(prepared->own), control);
  Result<std::vector<PolicyOutcome>> outcomes = simulations.run();
  if (!outcomes) return outcomes.error();
  answer.report.outcomes = std::move(*outcomes);
  if (request.keep_schedules) answer.predicted = simulations.predicted(request.seed);
  return std::move(answer);
}

SimulationPlan::One SimulationPlan::operator[](size_t number) const {
  const auto run = static_cast<int64_t>(number % of_a_policy());
  return {number / of_a_policy(), run < runs ? run : -1};
}

std::vector<PolicyOutcome> outcomes_of(const SimulationPlan& plan, std::vector<SimulatedRun> runs) {
  CHECK(runs.size() == plan.size(), "all simulations of a plan");
  std::vector<PolicyOutcome> outcomes(plan.policies.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    PolicyOutcome& outcome = outcomes[plan[i].policy];
    outcome.policy = plan.policies[plan[i].policy];
    if (plan[i].run < 0) {
      outcome.perfect = runs[i].metrics;
      continue;
    }
    outcome.runs.push_back(runs[i].metrics);
    outcome.add_breakdowns(std::move(runs[i].breakdowns));
  }
  return outcomes;
}

Result<ScheduleCases> ScheduleCases::read(const ScheduleRequest& request, const WorkControl& control) {
  Result<PreparedSchedule> read = prepare(request, control);
  if (!read) return read.error();
  const auto prepared = std::make_shared<PreparedSchedule>(std::move(*read));
  const auto quiet = std::make_shared<WorkControl>(WorkControl{{}, control.stop, control.budget});
  const auto simulations = std::make_shared<Simulations>(request, prepared->answer, std::move(prepared->own), *quiet);
  ScheduleCases cases;
  cases.plan_ = simulations->plan();
  cases.report_ = prepared->answer.report;
  cases.simulate_ = [prepared, quiet, simulations](size_t number) { return simulations->run_one(number); };
  return cases;
}

}  // namespace forerun
