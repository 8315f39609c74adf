#include "api/driple_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/data_dir.h"
#include "base/nearest.h"
#include "learn/driple/resource_trees.h"
#include "learn/weights_json.h"
#include "report/table.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTransferFile = "transfer.json";
constexpr int64_t kShorterTuning = 3;  // times fewer epochs than training from the beginning
constexpr int64_t kTransferEpochs = 240;

DripleRow driple_row(const std::string& name, const std::string& note, const learn::ResourceData& data,
                     const learn::Selection& test, const std::vector<learn::ResourceMetrics>& predicted) {
  DripleRow row{.predictor = name, .note = note, .errors = learn::resource_errors(data, test, predicted)};
  for (size_t m = 0; m < learn::kResourceMetrics; ++m) {
    double squares = 0;
    double least = 1e300;
    double most = -1e300;
    for (size_t i = 0; i < test.size(); ++i) {
      const double measured = data.workloads[test[i]].measured[m];
      squares += (predicted[i][m] - measured) * (predicted[i][m] - measured);
      least = std::min(least, measured);
      most = std::max(most, measured);
    }
    const double rmse = std::sqrt(squares / static_cast<double>(std::max<size_t>(test.size(), 1)));
    row.nrmse += rmse / std::max(most - least, 1e-9) / static_cast<double>(learn::kResourceMetrics);
  }
  return row;
}

std::vector<std::string> settings_in(const learn::ResourceData& data) {
  std::set<std::string> settings;
  for (const learn::ResourceWorkload& workload : data.workloads) settings.insert(workload.setting);
  return {settings.begin(), settings.end()};
}

Result<learn::ResourceData> data_with(const DripleDataOptions& options, const std::string& setting) {
  const auto knowledge = load_knowledge();
  if (!knowledge) return knowledge.error();
  auto data = load_driple_data(options, *knowledge);
  if (!data) return data.error();
  const std::vector<std::string> settings = settings_in(*data);
  if (std::find(settings.begin(), settings.end(), setting) == settings.end()) {
    return Error{"no record is of the setting '" + setting + "'", "--setting", did_you_mean(setting, settings)};
  }
  return data;
}

// Every third workload, in the order of the records.
learn::Selection third_of(const learn::Selection& all) {
  learn::Selection third;
  for (size_t i = 0; i < all.size(); i += 3) third.push_back(all[i]);
  return third;
}

// A network from the beginning, and one tuned from `weights` on a third of the workloads.
Result<DripleTransferRow> transfer_to(const learn::ResourceData& data, const std::string& setting,
                                      const std::string& weights, const learn::TrainOptions& given) {
  learn::TrainOptions options = given;
  if (!options.epochs) options.epochs = kTransferEpochs;
  const learn::Selection all = learn::select_workloads(data, setting, learn::Split::train);
  const learn::Selection some = third_of(all);
  const learn::Selection test = learn::select_workloads(data, setting, learn::Split::test);
  const learn::ResourceFold whole = learn::resource_fold(data, all, options.seed);
  auto full = learn::make_driple();
  if (!full) return full.error();
  const auto full_log = (*full)->train(data, whole.training, whole.validation, options);
  if (!full_log) return full_log.error();
  auto tuned = learn::make_driple();
  if (!tuned) return tuned.error();
  if (const Status status = (*tuned)->load(weights); !status.ok()) return status.error();
  const learn::ResourceFold part = learn::resource_fold(data, some, options.seed);
  learn::TrainOptions shorter = options;
  if (shorter.epochs) shorter.epochs = std::max<int64_t>(1, *shorter.epochs / kShorterTuning);
  const auto tuned_log = (*tuned)->transfer(data, part.training, part.validation, shorter);
  if (!tuned_log) return tuned_log.error();
  return DripleTransferRow{
      .setting = setting,
      .full_workloads = std::ssize(all),
      .tuned_workloads = std::ssize(some),
      .test_workloads = std::ssize(test),
      .full_error = learn::mean_of(learn::resource_errors(data, test, (*full)->predict(data, test))),
      .tuned_error = learn::mean_of(learn::resource_errors(data, test, (*tuned)->predict(data, test))),
      .full_seconds = full_log->seconds,
      .tuned_seconds = tuned_log->seconds};
}

nlohmann::json transfers_json(const std::vector<DripleTransferRow>& rows) {
  nlohmann::json json = {{"transfers", nlohmann::json::array()}};
  for (const DripleTransferRow& row : rows) {
    json["transfers"].push_back({{"setting", row.setting},
                                 {"workloads", {row.full_workloads, row.tuned_workloads, row.test_workloads}},
                                 {"errors", {row.full_error, row.tuned_error}},
                                 {"seconds", {row.full_seconds, row.tuned_seconds}}});
  }
  return json;
}

// What `forerun train driple --transfer` kept; nothing where it kept nothing.
std::vector<DripleTransferRow> kept_transfers(const std::string& folder) {
  std::vector<DripleTransferRow> rows;
  const auto json = learn::read_json(folder, kTransferFile, {"transfers"});
  if (!json) return rows;
  try {
    for (const nlohmann::json& entry : json->at("transfers")) {
      rows.push_back({.setting = entry.at("setting").get<std::string>(),
                      .full_workloads = entry.at("workloads").at(0).get<int64_t>(),
                      .tuned_workloads = entry.at("workloads").at(1).get<int64_t>(),
                      .test_workloads = entry.at("workloads").at(2).get<int64_t>(),
                      .full_error = entry.at("errors").at(0).get<double>(),
                      .tuned_error = entry.at("errors").at(1).get<double>(),
                      .full_seconds = entry.at("seconds").at(0).get<double>(),
                      .tuned_seconds = entry.at("seconds").at(1).get<double>()});
    }
  } catch (const nlohmann::json::exception&) {
    rows.clear();
  }
  return rows;
}

Status write_driple_card(const std::string& folder, const DripleTraining& request, const learn::ResourceData& data,
                         const DripleTrainingOutcome& outcome, const learn::Settings& settings) {
  return learn::write_json(folder, "card.json",
                           {{"predictor", "driple"},
                            {"setting", request.setting},
                            {"settings", settings},
                            {"trained_on", data.source},
                            {"examples", {{"training", outcome.training}, {"validation", outcome.validation}}},
                            {"seed", request.options.seed},
                            {"epochs", outcome.log.epochs.size()},
                            {"best_epoch", outcome.log.best_epoch},
                            {"validation_error", outcome.log.best_validation_error},
                            {"training_seconds", outcome.log.seconds},
                            {"device", outcome.log.device}});
}

Status keep_driple(const DripleTraining& request, const learn::ResourceData& data,
                   const learn::ResourcePredictor& predictor, DripleTrainingOutcome& outcome) {
  std::error_code failed;
  fs::create_directories(request.out, failed);
  if (failed) return Error{"cannot be made: " + failed.message(), request.out, "check the path"};
  if (const Status status = predictor.save(request.out); !status.ok()) return status;
  outcome.folder = request.out;
  return write_driple_card(request.out, request, data, outcome, predictor.settings());
}

// Predictions of the test workloads by trees that correct a first guess; nothing where trees cannot be grown.
std::vector<learn::ResourceMetrics> judge_trees(const char* name, const char* note, learn::TreeBasis basis,
                                                const learn::ResourceData& data, const learn::Selection& test,
                                                DripleAccuracy& accuracy) {
  learn::ResourceTrees trees(basis);
  const learn::Selection training = learn::select_workloads(data, accuracy.setting, learn::Split::train);
  if (const Status status = trees.train(data, training, 1); !status.ok()) {
    accuracy.missing.push_back(fmt::format("{}: {}", name, status.error().message()));
    return {};
  }
  std::vector<learn::ResourceMetrics> predicted = trees.predict(data, test);
  accuracy.rows.push_back(driple_row(name, note, data, test, predicted));
  return predicted;
}

// Geometric mean of what several say.
std::vector<learn::ResourceMetrics> blended(const std::vector<std::vector<learn::ResourceMetrics>>& members) {
  std::vector<learn::ResourceMetrics> mean = members[0];
  for (size_t i = 0; i < mean.size(); ++i) {
    for (size_t m = 0; m < learn::kResourceMetrics; ++m) {
      double sum = 0;
      for (const auto& member : members) sum += std::log(std::max(member[i][m], 1e-6));
      mean[i][m] = std::exp(sum / static_cast<double>(members.size()));
    }
  }
  return mean;
}

}  // namespace

Result<DripleTrainingOutcome> train_driple(const DripleTraining& request) {
  auto predictor = learn::make_driple();
  if (!predictor) return predictor.error();
  if (request.transfers && request.out.empty()) {
    return Error{"transfer learning starts from kept weights", "--transfer", "name a folder for them with --out"};
  }
  const auto data = data_with(request.data, request.setting);
  if (!data) return data.error();
  const learn::Selection all = learn::select_workloads(*data, request.setting, learn::Split::train);
  const learn::Selection test = learn::select_workloads(*data, request.setting, learn::Split::test);
  const learn::ResourceFold fold = learn::resource_fold(*data, all, request.options.seed);
  DripleTrainingOutcome outcome;
  outcome.training = std::ssize(fold.training);
  outcome.validation = std::ssize(fold.validation);
  outcome.test = std::ssize(test);
  auto log = (*predictor)->train(*data, fold.training, fold.validation, request.options);
  if (!log) return log.error();
  outcome.log = std::move(*log);
  outcome.row = driple_row("driple", "", *data, test, (*predictor)->predict(*data, test));
  if (request.out.empty()) return outcome;
  if (const Status status = keep_driple(request, *data, **predictor, outcome); !status.ok()) return status.error();
  if (!request.transfers) return outcome;
  for (const std::string& setting : settings_in(*data)) {
    if (setting == request.setting) continue;
    auto row = transfer_to(*data, setting, request.out, request.options);
    if (!row) return row.error().within(setting);
    outcome.transfers.push_back(*row);
  }
  const Status status = learn::write_json(request.out, kTransferFile, transfers_json(outcome.transfers));
  if (!status.ok()) return status.error();
  return outcome;
}

std::string to_text(const DripleTrainingOutcome& outcome) {
  const DripleRow& row = outcome.row;
  std::string text = fmt::format(
      "{} workloads trained on, {} to stop by; best epoch {} of {}, validation error {}, {:.0f} s\n"
      "{} workloads of test families: GPU {}, memory {}, send {}, receive {}, NRMSE {:.3f}\n",
      outcome.training, outcome.validation, outcome.log.best_epoch, outcome.log.epochs.size(),
      percent(outcome.log.best_validation_error), outcome.log.seconds, outcome.test, percent(row.resource_error(0)),
      percent(row.resource_error(1)), percent(row.resource_error(2)), percent(row.resource_error(3)), row.nrmse);
  for (const DripleTransferRow& each : outcome.transfers) {
    text += fmt::format("{}: {} in {:.1f} s from {} workloads, {} in {:.1f} s tuned on {}\n", each.setting,
                        percent(each.full_error), each.full_seconds, each.full_workloads, percent(each.tuned_error),
                        each.tuned_seconds, each.tuned_workloads);
  }
  if (!outcome.folder.empty()) text += outcome.folder + "\n";
  return text;
}

Result<DripleAccuracy> evaluate_driple(const DripleEvaluation& request) {
  const auto folder = data_dir();
  if (!folder) return folder.error();
  const auto data = data_with(request.data, request.setting);
  if (!data) return data.error();
  const learn::Selection test = learn::select_workloads(*data, request.setting, learn::Split::test);
  if (test.empty()) {
    return Error{"no workload of a test family is there", request.setting,
                 "name records of other families with --data"};
  }
  DripleAccuracy accuracy;
  accuracy.setting = request.setting;
  accuracy.source = data->source;
  accuracy.training = std::ssize(learn::select_workloads(*data, request.setting, learn::Split::train));
  accuracy.test = std::ssize(test);
  std::set<std::string> families;
  std::vector<learn::ResourceMetrics> simulated;
  for (const uint32_t i : test) {
    families.insert(data->workloads[i].family);
    simulated.push_back(data->workloads[i].simulated);
  }
  accuracy.test_families = {families.begin(), families.end()};

  std::vector<std::string> weights = request.weights;
  if (weights.empty()) weights.push_back((*folder / "weights" / ("driple-" + request.setting)).string());
  std::vector<std::vector<learn::ResourceMetrics>> members;
  for (const std::string& path : weights) {
    auto driple = learn::make_driple();
    const Status status = driple ? (*driple)->load(path) : Status(driple.error());
    if (!status.ok()) {
      accuracy.missing.push_back("driple: " + status.error().message());
    } else {
      members.push_back((*driple)->predict(*data, test));
      accuracy.rows.push_back(driple_row("driple", fs::path(path).filename().string(), *data, test, members.back()));
    }
    for (const DripleTransferRow& row : kept_transfers(path)) accuracy.transfers.push_back(row);
  }
  accuracy.rows.push_back(driple_row("simulation", "event by event, hosts fitted", *data, test, simulated));
  for (const auto& [name, note, basis] :
       {std::tuple("simulation + trees", "trees correct it", learn::TreeBasis::simulation),
        std::tuple("formulas + trees", "trees correct a few formulas", learn::TreeBasis::formulas)}) {
    auto predicted = judge_trees(name, note, basis, *data, test, accuracy);
    if (!predicted.empty()) members.push_back(std::move(predicted));
  }
  if (members.size() > 1) {
    accuracy.rows.push_back(driple_row("blend", "geometric mean of driple and trees", *data, test, blended(members)));
  }
  return accuracy;
}

}  // namespace forerun
