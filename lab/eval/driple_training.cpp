#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "lab/dataset/driple/driple_rows.h"
#include "lab/dataset/driple/resource_file.h"
#include "lab/dataset/weights_files.h"
#include "lab/eval/driple_suite.h"
#include "report/table.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kModelFolds = 6;

struct DripleVariant {
  const char* name;
  learn::Settings settings;
};

// Driple's ablations; without groups a graph has as many nodes as ops, so that half of them would be too deep.
const std::vector<DripleVariant>& driple_ablations() {
  static const std::vector<DripleVariant> list = {
      {"as here", {}},
      {"grouping none", {{"grouping", "none"}, {"depth", "12"}}},
      {"grouping uniform, M = 100", {{"grouping", "uniform"}, {"depth", "12"}}},
      {"layer GIN", {{"layer", "gin"}}},
      {"layer GAT", {{"layer", "gat"}}},
      {"layer MPNN", {{"layer", "mpnn"}}},
      {"K = 2", {{"depth", "2"}}},
      {"K = 4", {{"depth", "4"}}},
      {"K = 24", {{"depth", "24"}}},
      {"readout sum", {{"readout", "sum"}}},
      {"readout mean", {{"readout", "mean"}}},
      {"readout max", {{"readout", "max"}}},
      {"constants, inputs and hyper-parameters as nodes", {{"nodes", "all"}}},
      {"graph alone", {{"globals", "no"}}},
      {"targets over their maximum", {{"target", "max"}}},
      {"paper: graph alone with all nodes, over maximum, M = 100",
       {{"globals", "no"}, {"nodes", "all"}, {"target", "max"}, {"grouping", "uniform"}, {"depth", "12"}}}};
  return list;
}

// Parts that transfer learning changes, and how many of the repeated layers.
const std::vector<DripleVariant>& driple_parts_tried() {
  static const std::vector<DripleVariant> list = {
      {"late layers, MLP", {{"tune", "late+mlp"}}},
      {"late layers, GRU", {{"tune", "late+gru"}}},
      {"late layers, readout", {{"tune", "late+readout"}}},
      {"late layers, GRU, MLP", {{"tune", "late+gru+mlp"}}},
      {"late layers, readout, MLP", {{"tune", "late+readout+mlp"}}},
      {"GRU, MLP", {{"tune", "gru+mlp"}}},
      {"readout, MLP", {{"tune", "readout+mlp"}}},
      {"MLP", {{"tune", "mlp"}}},
      {"everything", {{"tune", "all"}}},
      {"a quarter of the layers, MLP", {{"tune", "late+mlp"}, {"late", "25"}}},
      {"three quarters of the layers, MLP", {{"tune", "late+mlp"}, {"late", "75"}}},
      {"all repeated layers, MLP", {{"tune", "late+mlp"}, {"late", "100"}}}};
  return list;
}

// Transfer is judged by convergence: training ends once the error on families set aside has not fallen for so many epochs.
constexpr int64_t kMostEpochs = 300;
constexpr int64_t kPatience = 12;
constexpr double kSetAside = 0.2;
constexpr double kTunedShare = 0.4;  // of the workloads, as in the paper
constexpr const char* kPartsSetting = "P1w4-10G";

Result<learn::ResourceData> training_data(const DripleTraining& request) {
  if (!request.cache.empty()) return learn::load_resource_data(request.cache);
  const auto cost_models = load_cost_models();
  if (!cost_models) return cost_models.error();
  DripleDataOptions options = request.data;
  if (request.study == "transfer") options.unmeasured = thirteen_settings();
  return load_driple_data(options, *cost_models);
}

learn::ResourceJob training_job(const DripleTraining& request) {
  learn::ResourceJob job{.study = "training", .name = "driple", .setting = request.setting, .recipe = request.recipe};
  job.recipe.pretrain = request.data.simulated > 0;
  job.all_settings = request.all_settings;
  if (request.folds > 0) {
    job.on = learn::JudgedOn::family_folds;
    job.folds = request.folds;
  }
  return job;
}

std::vector<learn::ResourceJob> sample_jobs(const DripleTraining& request, int64_t all) {
  std::vector<learn::ResourceJob> jobs;
  for (const int64_t samples : {int64_t{14}, int64_t{28}, int64_t{54}, all}) {
    if (samples > all) continue;
    for (const bool pretrained : {false, true}) {
      learn::ResourceJob job = training_job(request);
      job.study = "samples";
      job.name = fmt::format("{}, {} workloads", pretrained ? "pre-trained" : "from the beginning", samples);
      job.samples = samples;
      job.recipe.pretrain = pretrained;
      jobs.push_back(job);
    }
  }
  return jobs;
}

// A training until nothing is gained.
learn::ResourceJob converging_job(const DripleTraining& request, const char* study, const std::string& setting) {
  learn::ResourceJob job = training_job(request);
  job.study = study;
  job.setting = setting;
  job.recipe.pretrain = false;
  job.all_settings = false;
  job.recipe.options.epochs = job.recipe.tune_epochs = kMostEpochs;
  job.recipe.options.patience = kPatience;
  job.recipe.options.validation = job.recipe.tune_validation = kSetAside;
  return job;
}

// From the base setting's weights, on some of the workloads.
void tune_some(const DripleTraining& request, const learn::ResourceData& data, learn::ResourceJob& job) {
  const auto all = static_cast<double>(learn::select_workloads(data, job.setting, learn::Split::train).size());
  job.recipe.from = request.out;
  job.samples = std::llround(std::ceil(kTunedShare * all));
}

std::vector<learn::ResourceJob> transfer_jobs(const DripleTraining& request, const learn::ResourceData& data) {
  std::vector<learn::ResourceJob> jobs;
  for (const std::string& setting : judged_settings(data)) {
    if (setting == request.setting) continue;
    learn::ResourceJob job = converging_job(request, "transfer", setting);
    job.name = "full";
    jobs.push_back(job);
    job.name = "tuned";
    tune_some(request, data, job);
    jobs.push_back(job);
  }
  return jobs;
}

std::vector<learn::ResourceJob> parts_jobs(const DripleTraining& request, const learn::ResourceData& data) {
  std::vector<learn::ResourceJob> jobs;
  for (const DripleVariant& variant : driple_parts_tried()) {
    learn::ResourceJob job = converging_job(request, "parts", kPartsSetting);
    job.name = variant.name;
    tune_some(request, data, job);
    for (const auto& [key, value] : variant.settings) job.recipe.options.settings[key] = value;
    jobs.push_back(job);
  }
  return jobs;
}

// Mean errors of the four resources on test families, by setting.
std::map<std::string, std::vector<double>> judged_in(const std::vector<std::string>& settings,
                                                     const learn::ResourceData& data,
                                                     learn::ResourcePredictor& predictor) {
  std::map<std::string, std::vector<double>> judged;
  for (const std::string& setting : settings) {
    const learn::Selection test = learn::select_workloads(data, setting, learn::Split::test);
    if (test.empty()) continue;
    const DripleRow errors{
        .predictor = "", .note = "", .errors = learn::resource_errors(data, test, predictor.predict(data, test))};
    for (size_t r = 0; r < 4; ++r) judged[setting].push_back(errors.resource_error(r));
  }
  return judged;
}

Status write_driple_card(const DripleTraining& request, const learn::ResourceData& data,
                         const learn::ResourceStudyRow& row, learn::ResourcePredictor& predictor) {
  const std::vector<std::string> knows =
      request.all_settings ? measured_settings(data) : std::vector<std::string>{request.setting};
  return learn::write_json(request.out, "card.json",
                           {{"predictor", "driple"},
                            {"setting", request.setting},
                            {"knows", knows},
                            {"judged", judged_in(knows, data, predictor)},
                            {"settings", predictor.settings()},
                            {"trained_on", data.source},
                            {"simulated", request.data.simulated},
                            {"examples", row.training},
                            {"seed", request.recipe.options.seed},
                            {"epochs", row.epochs},
                            {"validation_error", row.validation_error},
                            {"training_seconds", row.seconds},
                            {"pretraining_seconds", row.pretraining_seconds}});
}

Result<DripleTrainingOutcome> train_one(const DripleTraining& request, const learn::ResourceData& data) {
  std::unique_ptr<learn::ResourcePredictor> predictor;
  auto row = learn::run_job(training_job(request), data, learn::make_driple, &predictor);
  if (!row) return row.error();
  DripleTrainingOutcome outcome{.folder = "", .rows = {*row}};
  if (request.out.empty() || predictor == nullptr) return outcome;
  if (const Status status = learn::keep_resource_predictor(*predictor, request.out); !status.ok()) {
    return status.error();
  }
  outcome.folder = request.out;
  const Status status = write_driple_card(request, data, *row, *predictor);
  if (!status.ok()) return status.error();
  return outcome;
}

// What can be told of the study before any data is read.
Status check_study(const DripleTraining& request) {
  const std::vector<std::string> studies = {"ablations", "samples", "transfer", "parts", "models"};
  if (std::find(studies.begin(), studies.end(), request.study) == studies.end()) {
    return Error{"there is no study '" + request.study + "'", "--study", did_you_mean(request.study, studies)};
  }
  if (request.study == "samples" && request.data.simulated <= 0 && request.cache.empty()) {
    return Error{"fewer workloads are studied with and without pre-training", "--study", "name --pretrain, say 3000"};
  }
  if ((request.study == "transfer" || request.study == "parts") && request.out.empty()) {
    return Error{"transfer learning starts from kept weights", "--study", "name their folder with --out"};
  }
  return {};
}

Result<DripleTrainingOutcome> run_study(const DripleTraining& request, const learn::ResourceData& data) {
  const auto jobs = driple_study(request, data);
  if (!jobs) return jobs.error();
  DripleTrainingOutcome outcome;
  for (const learn::ResourceJob& job : *jobs) {
    auto row = learn::run_job(job, data, learn::make_driple);
    if (!row) return row.error().within(job.name);
    outcome.rows.push_back(std::move(*row));
    if (request.out.empty()) continue;
    // Line by line: what is there stays there, whatever happens to the next.
    const Status status = learn::write_study_rows(request.out, {outcome.rows.back()});
    if (!status.ok()) return status.error();
    outcome.folder = request.out;
  }
  return outcome;
}

}  // namespace

Result<std::vector<learn::ResourceJob>> driple_study(const DripleTraining& request, const learn::ResourceData& data) {
  if (const Status asked = check_study(request); !asked.ok()) return asked.error();
  if (request.study == "ablations") {
    std::vector<learn::ResourceJob> jobs;
    for (const DripleVariant& variant : driple_ablations()) {
      learn::ResourceJob job = training_job(request);
      job.study = request.study;
      job.name = variant.name;
      job.recipe.pretrain = false;
      for (const auto& [key, value] : variant.settings) job.recipe.options.settings[key] = value;
      jobs.push_back(job);
    }
    return jobs;
  }
  if (request.study == "samples") {
    return sample_jobs(request, std::ssize(learn::select_workloads(data, request.setting, learn::Split::train)));
  }
  if (request.study == "transfer") return transfer_jobs(request, data);
  if (request.study == "parts") return parts_jobs(request, data);
  learn::ResourceJob job = training_job(request);  // models
  job.study = request.study;
  job.on = learn::JudgedOn::model_folds;
  job.folds = kModelFolds;
  return std::vector<learn::ResourceJob>{job};
}

Result<std::string> write_driple_cache(const DripleDataOptions& options, const std::string& path) {
  const auto cost_models = load_cost_models();
  if (!cost_models) return cost_models.error();
  const auto data = load_driple_data(options, *cost_models);
  if (!data) return data.error();
  if (const Status status = learn::save_resource_data(*data, path); !status.ok()) return status.error();
  return fmt::format("{}, {} in all, {} iterations", data->source, data->workloads.size(),
                     data->iterations.examples().size());
}

Result<DripleTrainingOutcome> train_driple(const DripleTraining& request) {
  if (const auto predictor = learn::make_driple(); !predictor) return predictor.error();
  if (!request.study.empty()) {
    if (const Status asked = check_study(request); !asked.ok()) return asked.error();
  }
  if (const Status named = check_setting_name(request.setting); !named.ok()) return named.error();
  const auto data = training_data(request);
  if (!data) return data.error();
  if (const Status known = check_measured(*data, request.setting); !known.ok()) return known.error();
  return request.study.empty() ? train_one(request, *data) : run_study(request, *data);
}

std::string to_text(const DripleTrainingOutcome& outcome) {
  Table table({"", "setting", "trained on", "epochs", "validation", "judged on", "GPU util.", "GPU memory", "send",
               "receive", "NRMSE", "seconds"});
  for (const learn::ResourceStudyRow& row : outcome.rows) {
    const DripleRow errors{.predictor = "", .note = "", .errors = row.errors};
    table.add({row.name, row.setting, grouped(row.training), grouped(row.epochs), percent(row.validation_error),
               grouped(row.test), percent(errors.resource_error(0)), percent(errors.resource_error(1)),
               percent(errors.resource_error(2)), percent(errors.resource_error(3)), fmt::format("{:.3f}", row.nrmse),
               fmt::format("{:.1f}", row.seconds)});
  }
  return table.text() + (outcome.folder.empty() ? "" : outcome.folder + "\n");
}

std::string to_json(const DripleTrainingOutcome& outcome) {
  nlohmann::ordered_json json = {{"folder", outcome.folder}, {"rows", nlohmann::ordered_json::array()}};
  for (const learn::ResourceStudyRow& row : outcome.rows) {
    json["rows"].push_back(nlohmann::ordered_json::parse(learn::to_json_line(row)));
  }
  return json.dump();
}

}  // namespace forerun
