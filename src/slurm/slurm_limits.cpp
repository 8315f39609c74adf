#include "slurm/slurm_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/csv_rows.h"
#include "base/options_text.h"
#include "cluster/sources/cell_values.h"
#include "predict/predict.h"
#include "predict/setup_text.h"

namespace forerun {
namespace {

// What a job states, by key.
using Statement = std::map<std::string, std::string>;

constexpr double kLongest = 10.0 * 366 * 86400;  // seconds; Slurm's limits are 32-bit minutes

struct LimitStep {
  Nanoseconds step, most;
  Bytes memory;
  bool fits = true;
  Bytes gradients;
  int64_t micro_batches = 1;
  std::string calibration;
};

// The step of a gang on as few nodes as possible; the range widens with it.
Result<LimitStep> in_gang(LimitStep one, const std::string& gpu, int32_t gpus, const LimitOptions& options,
                          const DeviceCatalogue& devices) {
  if (gpus < 2) return one;
  cluster::Cluster cluster;
  cluster.pools = {{.type = cluster::canonical_type(gpu), .gpus = gpus, .gpus_per_node = options.gpus_per_node}};
  const auto links = communication_of(cluster, options.network, devices);
  if (!links) return links.error();
  const double compute = cluster::seconds(one.step);
  const double step =
      gang_step(*links, 0, gpus, {.seconds = compute, .gradients = one.gradients, .micro_batches = one.micro_batches});
  one.most = cluster::time_from_seconds(cluster::seconds(one.most) + step - compute);
  one.step = cluster::time_from_seconds(step);
  return one;
}

class LimitPredictor {
 public:
  LimitPredictor(const LimitOptions& options, const CostModels& cost_models)
      : options_(options), cost_models_(cost_models) {}

  Result<JobLimit> limit(Statement job) {
    JobLimit limit;
    limit.job = take(job, "id", take(job, "job", ""));
    const Result<double> gpus = whole_number(take(job, "gpus", "1"), "gpus", 1, 1e6);
    if (!gpus) return gpus.error();
    const std::string iterations_text = take(job, "iterations", "");
    const std::string duration = take(job, "duration", "");
    double planned = 0;  // seconds, by the slow end of the prediction
    if (!job["model"].empty()) {
      const Result<double> iterations = whole_number(iterations_text, "iterations", 1, 1e12);
      if (!iterations) return iterations.error();
      limit.gpu = take(job, "gpu", options_.gpu.empty() ? usual_gpu(cost_models_) : options_.gpu);
      const Result<LimitStep> alone = step_of(limit.gpu, std::move(job));
      if (!alone) return alone.error();
      const Result<LimitStep> step =
          in_gang(*alone, limit.gpu, static_cast<int32_t>(*gpus), options_, cost_models_.devices);
      if (!step) return step.error();
      limit.step = step->step;
      limit.memory = step->memory;
      limit.fits = step->fits;
      limit.calibration = step->calibration;
      limit.seconds = *iterations * milliseconds(step->step) * 1e-3;
      planned = *iterations * milliseconds(std::max(step->most, step->step)) * 1e-3;
    } else {
      const Result<double> stated = number(duration, "duration", 0, kLongest);
      if (!stated) return Error{"the job names no model and states no duration", "", "give a model or a duration"};
      limit.seconds = planned = *stated;
    }
    if (!(limit.seconds <= kLongest)) {
      return Error{fmt::format("the job would take {:.0f} years", limit.seconds / 31557600), "",
                   "give fewer iterations; ten years are the longest limit"};
    }
    const double with_margin = std::min(planned * (1 + options_.margin) + options_.startup, kLongest);
    limit.limit_minutes = std::max<int64_t>(static_cast<int64_t>(std::ceil(with_margin / 60)), 1);
    const double key = options_.order == JobOrder::shortest ? limit.seconds : limit.seconds * *gpus;
    limit.priority = priority_of(key);
    return limit;
  }

 private:
  static std::string take(Statement& job, const std::string& key, const std::string& otherwise) {
    const auto found = job.find(key);
    if (found == job.end()) return otherwise;
    std::string value = found->second;
    job.erase(found);
    return value.empty() ? otherwise : value;
  }

  static Result<double> number(const std::string& text, const std::string& what, double least, double most) {
    const auto value = cluster::parse_number(text);
    if (!value || !(*value >= least) || !(*value <= most)) {
      return Error{fmt::format("{} cannot be '{}'", what, text), "",
                   fmt::format("give a number from {} to {}", least, most)};
    }
    return *value;
  }

  static Result<double> whole_number(const std::string& text, const std::string& what, double least, double most) {
    Result<double> value = number(text, what, least, most);
    if (value && *value != std::floor(*value)) {
      return Error{fmt::format("{} cannot be '{}'", what, text), "", "give a whole number"};
    }
    return value;
  }

  // Jobs of one configuration differ in their iterations: its step is predicted once.
  Result<LimitStep> step_of(const std::string& gpu, Statement job) {
    std::string key = gpu;
    for (const auto& [name, value] : job) key += "\n" + name + "=" + value;
    if (const auto known = steps_.find(key); known != steps_.end()) return known->second;
    const Result<Device> device = cost_models_.devices.find(gpu);
    if (!device) return device.error();
    ModelRequest request;
    request.model = take(job, "model", "");
    if (const std::string batch = take(job, "batch", ""); !batch.empty()) {
      const Result<double> samples = whole_number(batch, "batch", 1, 1 << 30);
      if (!samples) return samples.error();
      request.batch = static_cast<int64_t>(*samples);
    }
    SetupText words;
    for (const std::string& word : setup_words()) {
      if (const Status status = read_setup_word(word, take(job, word, ""), words); !status) return status.error();
    }
    const Result<TrainingSetup> setup = parse_setup(words);
    if (!setup) return setup.error();
    request.setup = *setup;
    request.default_optimizer = words.optimizer.empty();
    auto further = parse_key_values(take(job, "set", ""), {"", "write set as layers=2;width=64"}, ';');
    if (!further) return further.error();
    request.settings = std::move(*further);
    for (const auto& [name, value] : job) {
      if (!value.empty()) request.settings.emplace_back(name, value);
    }
    const Result<TrainingRun> run = build_run(request, *device);
    if (!run) return run.error();
    const Prediction prediction = predict(*run, *device, cost_models_);
    const LimitStep answer{prediction.times.iteration,
                           prediction.p90,
                           prediction.memory.peak_reserved + prediction.context,
                           prediction.fits,
                           exchanged_gradients(run->graph),
                           run->setup.accumulate,
                           calibration_told(cost_models_, *device, *run)};
    steps_.emplace(key, answer);
    return answer;
  }

  const LimitOptions& options_;
  const CostModels& cost_models_;
  std::map<std::string, LimitStep> steps_;
};

// What job_submit.lua and the predictions file can hold as a key.
bool usable_key(const std::string& key) { return !key.empty() && key.find_first_of(",\"\n\r") == std::string::npos; }

}  // namespace

Status check_limit_options(const LimitOptions& options) {
  if (!(options.margin >= 0 && options.margin <= 100)) {
    return Error{fmt::format("a margin of {}", options.margin), "--margin", "give a share from 0 to 100"};
  }
  if (!(options.startup >= 0 && options.startup <= 1e6)) {
    return Error{fmt::format("a startup of {} s", options.startup), "--startup", "give 0 to 1e6 seconds"};
  }
  if (options.gpus_per_node < 1) return Error{"a node needs a GPU", "--gpus-per-node", "give 1 or more"};
  return {};
}

int64_t priority_of(double seconds) {
  return std::max<int64_t>(std::llround(1e6 * (32 - std::log2(std::max(seconds, 0.0) + 1))), 1);
}

Result<std::vector<JobLimit>> predict_limits(const std::string& path, const LimitOptions& options,
                                             const CostModels& cost_models,
                                             const std::function<void(const Error&)>& bad_row,
                                             const WorkControl& control) {
  if (const Status status = check_limit_options(options); !status) return status.error();
  Work work(control, "jobs");
  auto reader = LineReader::open(path);
  if (!reader) return reader.error();
  CsvRows rows(std::move(*reader), ',');
  if (const Status status = rows.begin(); !status) return status.error();
  if (!rows.column("id") && !rows.column("job")) {
    return Error{"the heading has no column id", path + ":1",
                 "give each job an id, model, iterations; see docs/slurm.md"};
  }
  LimitPredictor predictor(options, cost_models);
  std::vector<JobLimit> limits;
  std::map<std::string, int64_t> line_of;
  bool any = false;
  while (true) {
    const auto more = rows.next();
    if (!more) return more.error();
    if (!*more) break;
    any = true;
    const std::string place = fmt::format("{}:{}", path, rows.line());
    Statement job;
    for (size_t i = 0; i < std::min(rows.size(), rows.heading().size()); ++i) {
      // Columns of job files that say nothing about the time of a job.
      static const std::vector<std::string> passed_over = {"submit", "deadline", "user",
                                                           "vc",     "priority", "memory_gib"};
      const std::string& name = rows.heading()[i];
      if (std::find(passed_over.begin(), passed_over.end(), name) == passed_over.end()) job[name] = rows.cell(i);
    }
    Result<JobLimit> limit = predictor.limit(std::move(job));
    if (limit && !usable_key(limit->job)) {
      limit = Error{fmt::format("'{}' cannot name a job", limit->job), "", "leave out commas and quotes"};
    }
    if (limit) {
      const auto [first, is_new] = line_of.emplace(limit->job, rows.line());
      if (!is_new) {
        limit = Error{fmt::format("job '{}' is in line {} already", limit->job, first->second), "", "keep one of them"};
      }
    }
    if (limit) {
      limits.push_back(std::move(*limit));
    } else {
      bad_row(limit.error().within(place));
    }
    if (const Status status = work.advance(); !status) return status.error();
  }
  if (!any) return Error{"the table has a heading and no rows", path, "give a row a job; see docs/slurm.md"};
  std::sort(limits.begin(), limits.end(), [](const JobLimit& a, const JobLimit& b) { return a.job < b.job; });
  return limits;
}

Result<std::vector<JobLimit>> read_limits(const std::string& path) {
  auto reader = LineReader::open(path);
  if (!reader) return reader.error();
  CsvRows rows(std::move(*reader), ',');
  if (const Status status = rows.begin(); !status) return status.error();
  const auto job = rows.need("job");
  const auto minutes = rows.need("time_limit_min");
  const auto priority = rows.need("priority");
  for (const auto* column : {&job, &minutes, &priority}) {
    if (!*column) return column->error();
  }
  std::vector<JobLimit> limits;
  while (true) {
    const auto more = rows.next();
    if (!more) return more.error();
    if (!*more) return limits;
    const auto limit = cluster::parse_integer(rows.cell(*minutes));
    const auto rank = cluster::parse_integer(rows.cell(*priority));
    if (!limit || *limit < 1 || !rank || *rank < 1) {
      return Error{"a limit or priority is no number from 1", fmt::format("{}:{}", path, rows.line()),
                   "write the file with `forerun slurm limits`"};
    }
    JobLimit read;
    read.job = rows.cell(*job);
    read.limit_minutes = *limit;
    read.priority = *rank;
    limits.push_back(std::move(read));
  }
}

Result<JobLimit> predict_limit(const std::string& description, const LimitOptions& options,
                               const CostModels& cost_models) {
  if (const Status status = check_limit_options(options); !status) return status.error();
  const OptionGrammar grammar{"", "write model=resnet50 batch=64 iterations=10000"};
  KeyValues words;
  for (const std::string_view word : split_list(description, " \t\n\v\f\r")) {
    if (word.empty()) continue;
    Result<KeyValue> stated = parse_key_value(word, grammar);
    if (!stated) return stated.error();
    if (const Status status = add_once(std::move(*stated), words, grammar); !status) return status.error();
  }
  Statement job(words.begin(), words.end());
  LimitPredictor predictor(options, cost_models);
  Result<JobLimit> limit = predictor.limit(std::move(job));
  if (limit && limit->job.empty()) limit->job = description;
  return limit;
}

}  // namespace forerun
