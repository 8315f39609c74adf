#include "cluster/schedule_predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/data_dir.h"
#include "base/nearest.h"
#include "base/options_text.h"
#include "base/provenance.h"
#include "cost/collective/link_name.h"
#include "derive/precision_support.h"
#include "predict/carried_models.h"
#include "predict/predict.h"
#include "records/data_scan.h"

namespace forerun {
namespace {

constexpr const char* kDefaultSuite = "h200";
constexpr const char* kHybrid = "hybrid";
constexpr const char* kOtherGpusSuite = "other-gpus";
constexpr const char* kHybridLabel = "forerun";  // what evaluations call `forerun predict`
constexpr const char* kErrorLike = "error-like:";
// Predictors that are trained, by the names that lab/ gives them.
constexpr const char* kLearned[] = {"ets", "dnnperf", "birnn", "arnn", "mlp", "gbdt", "brp-nas", "habitat", "neusight"};
constexpr const char* kUnknownTypeLink = "pcie4";

// A row of an evaluation that has the spread of the errors of iteration times; nothing: it has not. Other libraries'
// exceptions stop here.
std::optional<cluster::MeasuredErrors> errors_from(const nlohmann::json& row) {
  try {
    for (const auto& evaluation : row.at("evaluations")) {
      if (evaluation.at("quantity") != "iteration_ms" || !evaluation.contains("ratios")) continue;
      cluster::MeasuredErrors errors;
      errors.examples = evaluation.at("all").at("count").get<int64_t>();
      errors.mean = evaluation.at("all").at("mre").get<double>();
      errors.ratios = evaluation.at("ratios").get<std::vector<double>>();
      const bool sound = errors.ratios.size() >= 2 && errors.ratios.front() > 0 && errors.ratios.back() < 1e6 &&
                         std::is_sorted(errors.ratios.begin(), errors.ratios.end());
      if (sound) return errors;
    }
  } catch (const nlohmann::json::exception&) {
  }
  return std::nullopt;
}

std::vector<std::string> evaluated_suites(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(folder, ignored)) {
    if (file.path().extension() == ".json") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The label of a row, as --predictor names it.
std::string predictor_name(const std::string& label) {
  if (label == kHybridLabel) return kHybrid;
  return label.ends_with("-time") ? label.substr(0, label.size() - 5) : label;
}

// Of what `forerun predict` draws on for the GPUs of a suite.
Result<std::string> forerun_fingerprint(const std::string& suite) {
  return suite == kOtherGpusSuite ? carried_models_fingerprint() : cost_models_fingerprint();
}

// What a row of an evaluation was judged with, as it lies here now; empty where it was not kept.
std::string weights_now(const std::string& suite, const std::string& label) {
  const auto data = data_dir();
  const auto now = label == kHybridLabel ? forerun_fingerprint(suite)
                   : data                ? fingerprint({*data / "weights" / suite / label})
                                         : Result<std::string>(data.error());
  return now ? *now : "";
}

// Why the errors of a row may not be those of the predictor of today; empty: they are.
std::string staleness(const nlohmann::json& row, const nlohmann::json& suite, const std::string& label) {
  const std::string then = row.value("weights", "");
  const std::string now = weights_now(suite.value("suite", ""), label);
  if (!then.empty() && then == now) return "";
  const std::string what = label == kHybridLabel ? "cost models" : "weights";
  return fmt::format("; STALE: measured {} with {} that are {}", suite.value("date", "before dates were kept"), what,
                     now.empty() ? "not kept" : "not those of today");
}

Result<cluster::MeasuredErrors> errors_in(const nlohmann::json& suite, const std::string& name,
                                          const std::string& file) {
  std::vector<std::string> known;
  for (const auto& row : suite.value("predictors", nlohmann::json::array())) {
    auto errors = errors_from(row);
    const std::string label = row.value("label", "");
    if (!errors) continue;
    known.push_back(predictor_name(label));
    if (name != label && name != known.back()) continue;
    errors->source = fmt::format("{}: {} on {} iterations of unseen model families, suite {}, mean error {:.1f} %{}",
                                 file, label == kHybridLabel ? "forerun predict" : label, errors->examples,
                                 suite.value("suite", ""), 100 * errors->mean, staleness(row, suite, label));
    return *errors;
  }
  return Error{fmt::format("no errors of '{}' were measured in {}", name, file), "--predictor",
               did_you_mean(name, known)};
}

// Why a learned predictor cannot be asked about all jobs of a workload.
Error not_asked(const cluster::Predictor& predictor, const std::string& why) {
  return {why, "--predictor",
          fmt::format(
              "use --predictor {}{} for true durations with errors like its own, or hybrid to ask `forerun predict`",
              kErrorLike, predictor.name)};
}

Result<ModelRequest> request_of(const cluster::Configuration& configuration) {
  ModelRequest request;
  request.model = configuration.model;
  if (configuration.batch > 0) request.batch = configuration.batch;
  if (!configuration.fault.empty()) return Error{configuration.fault, "", ""};
  request.setup = configuration.setup;
  request.default_optimizer = configuration.default_optimizer;
  request.settings = configuration.settings;
  return request;
}

}  // namespace

Bytes exchanged_gradients(const Graph& graph) {
  if (graph.parameters().empty()) return Bytes(graph.parameter_count() * kGradientBytes);
  Bytes sum;
  for (const TensorId parameter : graph.parameters()) sum += graph.bytes_of(parameter);
  return sum;
}

double gang_step(const cluster::CommunicationModel& links, uint32_t pool, int32_t gpus, const GangWork& work) {
  // Gradients travel beside the last micro-batch alone.
  const double last = work.seconds / static_cast<double>(std::max<int64_t>(work.micro_batches, 1));
  return work.seconds - last + links.step(last, work.gradients, pool, links.closest(pool, gpus));
}

Result<cluster::MeasuredErrors> find_measured_errors(const std::string& predictor) {
  const size_t at = predictor.find('@');
  const std::string name = predictor.substr(0, at);
  const std::string suite = at == std::string::npos ? kDefaultSuite : predictor.substr(at + 1);
  const auto data = data_dir();
  if (!data) return data.error();
  const std::filesystem::path folder = *data / "evaluations";
  const std::vector<std::string> suites = evaluated_suites(folder);
  if (std::find(suites.begin(), suites.end(), suite) == suites.end()) {
    return Error{fmt::format("the predictor '{}' was judged on no suite called '{}'", name, suite), "--predictor",
                 did_you_mean(suite, suites) + " `forerun eval --suite SUITE --json` writes one"};
  }
  const std::filesystem::path path = folder / (suite + ".json");
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object()) {
    return Error{"the evaluation cannot be read", path.string(), "write it again with `forerun eval --json`"};
  }
  return errors_in(json, name, fmt::format("data/evaluations/{}.json", suite));
}

Result<cluster::Predictor> parse_predictor(const std::string& text) {
  auto built_in = cluster::parse_built_in_predictor(text);
  if (!built_in) return built_in.error();
  if (built_in->has_value()) return **std::move(built_in);
  if (text == kHybrid || text.starts_with(kErrorLike)) {
    auto errors = find_measured_errors(text == kHybrid ? text : text.substr(std::string_view(kErrorLike).size()));
    if (!errors) return errors.error();
    const auto kind = text == kHybrid ? cluster::PredictorKind::hybrid : cluster::PredictorKind::error_like;
    return cluster::Predictor{.kind = kind, .name = text, .errors = std::move(*errors)};
  }
  std::vector<std::string> known = {"perfect", "none",     "class-mean", "error:8",
                                    "limits",  "limits:3", kHybrid,      "error-like:ets"};
  for (const char* name : kLearned) {
    if (text == name) return cluster::Predictor{.kind = cluster::PredictorKind::learned, .name = text};
    known.emplace_back(name);
  }
  return Error{fmt::format("no predictor is called '{}'", text), "--predictor", did_you_mean(text, known)};
}

Result<cluster::CommunicationModel> communication_of(const cluster::Cluster& cluster, const NetworkOptions& options,
                                                     const DeviceCatalogue& devices) {
  const auto network = network_by_name(options.link, devices);
  if (!network) return network.error().within("--network");
  const auto unknown = devices.find_link(kUnknownTypeLink);
  if (!unknown) return unknown.error();
  const auto efficiency = usual_collective_efficiency();
  if (!efficiency) return efficiency.error();
  cluster::CommunicationModel model;
  model.efficiency = *efficiency;
  for (const cluster::GpuPool& pool : cluster.pools) {
    cluster::PoolLinks links{*unknown, *network, options.oversubscription};
    if (const auto device = devices.find(pool.type)) {
      const Link own = link_within(*device, std::max<int64_t>(pool.gpus_per_node, 1));
      if (own.bandwidth > 0) links.within = own;
    }
    if (pool.gpus_per_node > 0) links.gpus_per_node = pool.gpus_per_node;
    model.pools.push_back(links);
  }
  return model;
}

Status StepPredictor::load() {
  if (state_->cost_models) return {};
  auto loaded = load_cost_models();
  if (!loaded) return loaded.error();
  state_->cost_models = std::make_shared<const CostModels>(*std::move(loaded));
  return {};
}

cluster::StepAnswer StepPredictor::in_gang(cluster::StepAnswer one, const cluster::StepQuestion& question) const {
  const auto pool = cluster_->find(question.gpu_type);
  if (question.gpus < 2 || !communication_ || !pool || one.step == cluster::kNever) return one;
  const double step = gang_step(*communication_, *pool, question.gpus,
                                {.seconds = cluster::seconds(one.step),
                                 .gradients = one.gradients,
                                 .micro_batches = question.configuration.setup.accumulate});
  return {cluster::time_from_seconds(step), one.gradients};
}

Result<cluster::StepAnswer> StepPredictor::predict_step(const cluster::StepQuestion& question) {
  if (Status status = load(); !status) return status.error();
  const auto device = state_->cost_models->devices.find(question.gpu_type);
  if (!device) return device.error();
  const auto request = request_of(question.configuration);
  if (!request) return request.error();
  // A job that asks for what the GPU does not have cannot run there, as one that does not fit.
  if (!derive::check_precision(request->setup.precision, *device).ok()) {
    return cluster::StepAnswer{cluster::kNever, Bytes(0)};
  }
  const auto run = build_run(*request, *device);
  if (!run) return run.error();
  return predict_run(*run, *device);
}

Result<cluster::StepAnswer> StepPredictor::predict_run(const TrainingRun& run, const Device& device) {
  const Prediction prediction = predict(run, device, *state_->cost_models);
  cluster::StepAnswer answer{prediction.fits ? prediction.times.iteration : cluster::kNever,
                             exchanged_gradients(run.graph)};
  if (!oracle_) {
    if (const std::string told = calibration_told(*state_->cost_models, device, run); !told.empty()) {
      state_->calibrations.insert(fmt::format("{}: {}", device.name, told));
    }
  }
  if (!oracle_ || answer.step == cluster::kNever) return answer;
  const auto told = oracle_(run, *state_->cost_models);
  if (!told) return told.error();
  answer.step = *told;
  return answer;
}

Result<cluster::StepAnswer> StepPredictor::operator()(const cluster::StepQuestion& question) {
  if (!question.configuration.record.empty()) {
    const auto known = state_->records.find(question.configuration.record);
    if (known != state_->records.end()) return in_gang(known->second, question);
    return Error{fmt::format("the run '{}' was not predicted", question.configuration.record), "", "name its file"};
  }
  cluster::StepQuestion alone = question;
  alone.gpus = 1;
  const auto known = state_->answers.find(alone);
  if (known != state_->answers.end()) return in_gang(known->second, question);
  const auto answer = predict_step(alone);
  if (!answer) return answer.error();
  state_->answers.emplace(alone, *answer);
  return in_gang(*answer, question);
}

Status StepPredictor::add_records(const std::vector<std::string>& files,
                                  const std::vector<cluster::Configuration>& wanted, const WorkControl& control) {
  if (Status status = load(); !status) return status;
  std::set<std::string> ids;
  for (const cluster::Configuration& configuration : wanted) ids.insert(configuration.record);
  Work work(control, "runs predicted", static_cast<int64_t>(ids.size()));
  const WorkControl silent{.progress = {}, .stop = control.stop, .budget = control.budget};
  const auto take = [&](const RunRecord& record, const DataPlace& /*place*/) {
    if (!ids.contains(record.run.id) || !record.has_graph || state_->records.contains(record.run.id)) return;
    const auto device = state_->cost_models->devices.find(record.run.environment.gpu);
    if (!device) return;
    const auto run = for_device(record.run, *device);
    const auto answer = run ? predict_run(*run, *device) : Result<cluster::StepAnswer>(run.error());
    if (answer) state_->records.emplace(record.run.id, *answer);
    (void)work.advance();
  };
  return scan_files(files, Fields::inputs, {.run = take, .sample = {}, .problem = [](const DataProblem&) {}}, silent);
}

namespace {

// Jobs that were predicted from what they name, and why the first that was not was not.
struct NamedPredictions {
  std::vector<cluster::Time> times;  // as PredictorAnswer::own; empty: none
  int64_t jobs = 0;
  std::string why;
};

Result<NamedPredictions> predict_named(const cluster::Workload& workload, const cluster::Cluster& cluster,
                                       StepPredictor& steps, const WorkControl& control) {
  NamedPredictions named;
  if (workload.named.empty()) return named;
  const size_t types = workload.truth.types();
  const bool one_for_all = types == 1 && cluster.pools.size() > 1;  // which device would that be?
  if (one_for_all || cluster.pools.front().type == "gpu") {
    named.why = "jobs that name a model are predicted where their durations are of types of GPUs: write --gpus h200=8";
    return named;
  }
  Work work(control, "jobs predicted", static_cast<int64_t>(workload.jobs.size()));
  named.times.assign(workload.jobs.size() * types, cluster::Time(0));
  for (cluster::JobIndex job = 0; job < workload.jobs.size(); ++job) {
    if (const Status status = work.advance(); !status) return status.error();
    const cluster::NamedConfiguration& own = workload.named[job];
    if (own.index < 0 || !own.measured) continue;
    bool whole = true;
    for (size_t type = 0; type < types; ++type) {
      const auto step = steps(
          {workload.configurations[static_cast<size_t>(own.index)], cluster.pools[type].type, workload.jobs[job].gpus});
      whole = whole && step && step->step != cluster::kNever;
      if (!step && named.why.empty()) {
        named.why = fmt::format("job '{}': {}", workload.name_of(job), step.error().message());
      }
      if (!step || step->step == cluster::kNever) continue;
      named.times[job * types + type] =
          std::max(cluster::time_from_seconds(cluster::seconds(step->step) * own.iterations), cluster::Time(1));
    }
    named.jobs += whole ? 1 : 0;
  }
  return named;
}

// All jobs, or an Error: errors that were drawn have a name of their own.
Result<PredictorAnswer> ask_learned(const cluster::Predictor& predictor, const cluster::Workload& workload,
                                    const cluster::Cluster& cluster, StepPredictor& steps, const WorkControl& control) {
  if (workload.named.empty()) {
    return not_asked(predictor,
                     fmt::format("jobs of this file name no models that '{}' could predict", predictor.name));
  }
  if (!steps.has_oracle()) {
    return not_asked(predictor, fmt::format("'{}' is asked by the program forerun-lab", predictor.name));
  }
  auto named = predict_named(workload, cluster, steps, control);
  if (!named) return named.error();
  const auto jobs = static_cast<int64_t>(workload.jobs.size());
  if (named->jobs < jobs) {
    const std::string why = named->why.empty() ? "the others name no model with a measured duration" : named->why;
    return not_asked(predictor,
                     fmt::format("'{}' can predict {} of {} jobs: {}", predictor.name, named->jobs, jobs, why));
  }
  return PredictorAnswer{std::move(named->times),
                         fmt::format("{} jobs predicted by {} from what they name", jobs, predictor.name)};
}

}  // namespace

Result<PredictorAnswer> own_predictions(const cluster::Predictor& predictor, const cluster::Workload& workload,
                                        const cluster::Cluster& cluster, StepPredictor& steps,
                                        const WorkControl& control) {
  if (predictor.kind == cluster::PredictorKind::learned) {
    return ask_learned(predictor, workload, cluster, steps, control);
  }
  NamedPredictions named;
  if (predictor.kind == cluster::PredictorKind::hybrid) {
    auto predicted = predict_named(workload, cluster, steps, control);
    if (!predicted) return predicted.error();
    named = std::move(*predicted);
  }
  PredictorAnswer answer{.own = std::move(named.times)};
  const auto jobs = static_cast<int64_t>(workload.jobs.size());
  const std::string drawn = fmt::format("true durations x errors drawn as measured ({})", predictor.errors.source);
  if (named.jobs == 0) {
    answer.source = drawn;
  } else {
    answer.source = fmt::format("{} of {} jobs predicted from what they name", named.jobs, jobs);
    if (named.jobs < jobs) answer.source += "; the others: " + drawn;
  }
  if (!named.why.empty()) answer.source += "; " + named.why;
  return answer;
}

}  // namespace forerun
