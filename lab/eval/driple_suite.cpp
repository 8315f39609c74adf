#include "lab/eval/driple_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/data_dir.h"
#include "lab/accuracy/published.h"
#include "lab/dataset/driple/driple_rows.h"
#include "lab/dataset/weights_files.h"
#include "lab/eval/driple_sensitivity.h"
#include "lab/trees/resource_trees.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kUnseenModelFolds = 6;

using Predictions = std::vector<learn::ResourceMetrics>;

DripleRow driple_row(const std::string& name, const std::string& note, const learn::ResourceData& data,
                     const learn::Selection& test, const Predictions& predicted) {
  return {.predictor = name,
          .note = note,
          .errors = learn::resource_errors(data, test, predicted),
          .nrmse = learn::normalised_rmse(data, test, predicted)};
}

Predictions simulated_metrics(const learn::ResourceData& data, const learn::Selection& workloads) {
  Predictions simulated;
  for (const uint32_t i : workloads) simulated.push_back(data.workloads[i].simulated);
  return simulated;
}

Result<learn::ResourceData> data_with(const DripleDataOptions& options) {
  const auto cost_models = load_cost_models();
  if (!cost_models) return cost_models.error();
  return load_driple_data(options, *cost_models);
}

Result<learn::ResourceData> data_in(const DripleDataOptions& options, const std::string& setting) {
  auto data = data_with(options);
  if (!data) return data.error();
  if (const Status known = check_measured(*data, setting); !known.ok()) return known.error();
  return data;
}

// Geometric mean of what several say.
Predictions blended(const std::vector<Predictions>& members) {
  Predictions mean = members[0];
  for (size_t i = 0; i < mean.size(); ++i) {
    for (size_t m = 0; m < learn::kResourceMetrics; ++m) {
      double sum = 0;
      for (const Predictions& member : members) sum += std::log(std::max(member[i][m], 1e-6));
      mean[i][m] = std::exp(sum / static_cast<double>(members.size()));
    }
  }
  return mean;
}

// Folders of the data folder's weights, by name.
std::vector<std::string> kept_weights(const fs::path& weights) {
  const std::string first = kDripleWeights;
  std::vector<std::string> folders;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(weights, failed)) {
    const std::string name = entry.path().filename().string();
    if (name == first || name.rfind(first + "+", 0) == 0) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  if (folders.empty()) folders.push_back((weights / first).string());
  return folders;
}

// Settings that the weights were trained on; an Error where their card does not say.
Result<std::vector<std::string>> known_settings(const std::string& folder) {
  const auto card = learn::read_json(folder, "card.json", {"knows"});
  if (!card) return card.error();
  const nlohmann::json& knows = card->at("knows");
  std::vector<std::string> settings;
  for (const nlohmann::json& name : knows) {
    if (name.is_string()) settings.push_back(name.get<std::string>());
  }
  return settings;
}

DripleRow unanswered(const std::string& name, const std::string& why) {
  DripleRow row{.predictor = name, .note = why};
  row.errors.fill(std::numeric_limits<double>::quiet_NaN());
  row.nrmse = std::numeric_limits<double>::quiet_NaN();
  return row;
}

// Figures that no workload tells.
std::vector<std::string> unjudged_figures(const learn::ResourceData& data, const learn::Selection& workloads) {
  std::vector<std::string> names;
  for (size_t m = 0; m < learn::kResourceMetrics; ++m) {
    const bool any =
        std::any_of(workloads.begin(), workloads.end(), [&](uint32_t i) { return data.workloads[i].judged[m]; });
    if (!any) names.push_back(fmt::format("{} {}", learn::kResourceNames[m / 3], learn::kFigureNames[m % 3]));
  }
  return names;
}

class DripleEvaluator {
 public:
  DripleEvaluator(const learn::ResourceData& data, DripleAccuracy& accuracy)
      : data_(data),
        accuracy_(accuracy),
        training_(learn::select_workloads(data, accuracy.setting, learn::Split::train)),
        test_(learn::select_workloads(data, accuracy.setting, learn::Split::test)) {
    for (const std::string& setting : measured_settings(data)) {
      const learn::Selection test = learn::select_workloads(data, setting, learn::Split::test);
      if (setting == accuracy.setting || test.empty()) continue;
      const auto training = std::ssize(learn::select_workloads(data, setting, learn::Split::train));
      accuracy.others.push_back({.setting = setting, .training = training, .test = std::ssize(test), .rows = {}});
    }
  }

  void evaluate_network(const std::string& folder) {
    auto driple = learn::make_driple();
    const Status status = driple ? (*driple)->load(folder) : Status(driple.error());
    if (!status.ok()) {
      accuracy_.missing.push_back("driple: " + status.error().message());
    } else {
      const learn::Settings settings = (*driple)->settings();
      const auto basis = settings.find("basis");
      const bool ratio = basis != settings.end() && basis->second == "simulation";
      const std::string name = ratio ? "driple on simulation" : "driple";
      members_.push_back((*driple)->predict(data_, test_));
      accuracy_.rows.push_back(driple_row(name, fs::path(folder).filename().string(), data_, test_, members_.back()));
      ask_about_others(name, folder, **driple);
    }
    add_studies(folder);
  }

  void evaluate_trees(const char* name, const char* note, learn::TreeBasis basis) {
    learn::ResourceTrees trees(basis);
    if (const Status status = trees.train(data_, training_, 1); !status.ok()) {
      accuracy_.missing.push_back(fmt::format("{}: {}", name, status.error().message()));
      return;
    }
    members_.push_back(trees.predict(data_, test_));
    accuracy_.rows.push_back(driple_row(name, note, data_, test_, members_.back()));
    if (basis != learn::TreeBasis::simulation) return;
    // Of what trees would correct half is kept: so it errs least on training families that are left out in turn.
    const Predictions half = blended({simulated_metrics(data_, test_), members_.back()});
    accuracy_.rows.push_back(driple_row("forerun", "geometric mean of simulation and trees on it", data_, test_, half));
    accuracy_.rows.push_back(each_window(half));
  }

  void evaluate_blend() {
    if (members_.size() < 2) return;
    members_.push_back(simulated_metrics(data_, test_));
    accuracy_.rows.push_back(
        driple_row("blend", "geometric mean of networks, simulation and trees", data_, test_, blended(members_)));
  }

  // The simulation in the other settings; `kernels` has those records alone that saw the GPU kernel by kernel.
  void evaluate_others(const learn::ResourceData* kernels) {
    for (DripleOtherSetting& other : accuracy_.others) {
      const learn::Selection test = learn::select_workloads(data_, other.setting, learn::Split::test);
      other.rows.push_back(driple_row("simulation", "", data_, test, simulated_metrics(data_, test)));
      if (kernels == nullptr) continue;
      const learn::Selection seen = learn::select_workloads(*kernels, other.setting, learn::Split::test);
      if (seen.empty()) continue;
      other.rows.push_back(driple_row("simulation, kernels", "the GPU kernel by kernel, and not by the workers' clocks",
                                      *kernels, seen, simulated_metrics(*kernels, seen)));
    }
  }

  // The same windows, divided by how links came to be shared: what is known only afterwards.
  void evaluate_divided() {
    std::set<std::string> parts;
    for (const learn::ResourceWorkload& workload : data_.workloads) {
      const bool ours = workload.labels == learn::Labels::divided && workload.setting.rfind(accuracy_.setting, 0) == 0;
      if (ours) parts.insert(workload.setting);
    }
    for (const std::string& part : parts) {
      const learn::Selection training = learn::select_workloads(data_, part, learn::Split::train);
      const learn::Selection test = learn::select_workloads(data_, part, learn::Split::test);
      if (test.empty()) continue;
      DripleDivided divided{.setting = part, .training = std::ssize(training), .test = std::ssize(test)};
      const Predictions simulated = simulated_metrics(data_, test);
      divided.rows.push_back(driple_row("simulation", "", data_, test, simulated));
      learn::ResourceTrees trees(learn::TreeBasis::simulation);
      if (trees.train(data_, training, 1).ok()) {
        divided.rows.push_back(
            driple_row("forerun", "", data_, test, blended({simulated, trees.predict(data_, test)})));
      }
      accuracy_.divided.push_back(std::move(divided));
    }
  }

  void evaluate_models() {
    learn::Selection all = training_;
    all.insert(all.end(), test_.begin(), test_.end());
    std::sort(all.begin(), all.end());
    accuracy_.models = std::ssize(all);
    accuracy_.model_folds = kUnseenModelFolds;
    learn::Selection judged;
    Predictions predicted;
    for (const learn::ResourceFold& fold :
         learn::resource_folds(data_, all, learn::JudgedOn::model_folds, kUnseenModelFolds)) {
      learn::ResourceTrees trees(learn::TreeBasis::simulation);
      if (!trees.train(data_, fold.training, 1).ok()) break;
      const Predictions some = trees.predict(data_, fold.validation);
      judged.insert(judged.end(), fold.validation.begin(), fold.validation.end());
      predicted.insert(predicted.end(), some.begin(), some.end());
    }
    accuracy_.model_rows.push_back(
        driple_row("simulation", "hosts fitted to training families", data_, all, simulated_metrics(data_, all)));
    if (judged.size() == all.size()) {
      accuracy_.model_rows.push_back(driple_row("simulation + trees", "trees correct it", data_, judged, predicted));
    }
  }

 private:
  // Predictions of workloads against every window by itself, and not against the mean of a workload's.
  [[nodiscard]] DripleRow each_window(const Predictions& predicted) const {
    learn::ResourceData single;
    Predictions repeated;
    learn::Selection all;
    for (size_t i = 0; i < test_.size(); ++i) {
      const learn::ResourceWorkload& workload = data_.workloads[test_[i]];
      for (const learn::ResourceMetrics& window : workload.windows) {
        all.push_back(static_cast<uint32_t>(single.workloads.size()));
        learn::ResourceWorkload alone;
        learn::add_window(alone, window);
        alone.judged = workload.judged;
        single.workloads.push_back(std::move(alone));
        repeated.push_back(predicted[i]);
      }
    }
    return driple_row("forerun, a window alone", fmt::format("against each of {} windows", all.size()), single, all,
                      repeated);
  }

  // In settings that it was trained on.
  void ask_about_others(const std::string& name, const std::string& folder, learn::ResourcePredictor& network) {
    const auto knows = known_settings(folder);
    for (DripleOtherSetting& other : accuracy_.others) {
      if (!knows) {
        other.rows.push_back(unanswered(name, "its card does not say which settings it knows"));
      } else if (std::find(knows->begin(), knows->end(), other.setting) == knows->end()) {
        other.rows.push_back(unanswered(name, "was not trained on this setting"));
      } else {
        const learn::Selection test = learn::select_workloads(data_, other.setting, learn::Split::test);
        other.rows.push_back(driple_row(name, "", data_, test, network.predict(data_, test)));
      }
    }
  }

  void add_studies(const std::string& folder) {
    const auto rows = learn::read_study_rows(folder);
    if (!rows) {
      accuracy_.missing.push_back("studies: " + rows.error().message());
      return;
    }
    for (const learn::ResourceStudyRow& row : *rows) {
      const DripleRow errors{.predictor = row.name, .note = "kept result", .errors = row.errors, .nrmse = row.nrmse};
      if (row.study == "models") accuracy_.model_rows.push_back(errors);
      if (row.study == "ablations" || row.study == "samples" || row.study == "parts") {
        accuracy_.studies.push_back({.study = row.study,
                                     .name = row.name,
                                     .setting = row.setting,
                                     .training = row.training,
                                     .epochs = row.epochs,
                                     .row = errors,
                                     .validation_error = row.validation_error,
                                     .seconds = row.seconds});
      }
    }
    for (const DripleTransferRow& row : transfers_of(*rows)) accuracy_.transfers.push_back(row);
  }

  const learn::ResourceData& data_;
  DripleAccuracy& accuracy_;
  learn::Selection training_, test_;
  std::vector<Predictions> members_;
};

}  // namespace

DripleRow repeatability(const learn::ResourceData& data, const learn::Selection& workloads) {
  // Every window as a workload of its own, predicted by the mean of the others.
  learn::ResourceData single;
  Predictions others;
  std::set<uint32_t> repeated;
  for (const uint32_t i : workloads) {
    const std::vector<learn::ResourceMetrics>& windows = data.workloads[i].windows;
    if (windows.size() < 2) continue;
    repeated.insert(i);
    for (size_t out = 0; out < windows.size(); ++out) {
      learn::ResourceWorkload window;
      window.judged = data.workloads[i].judged;
      learn::add_window(window, windows[out]);
      learn::ResourceWorkload rest;
      for (size_t w = 0; w < windows.size(); ++w) {
        if (w != out) learn::add_window(rest, windows[w]);
      }
      single.workloads.push_back(std::move(window));
      others.push_back(rest.measured);
    }
  }
  learn::Selection all(single.workloads.size());
  for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  return driple_row("measured again",
                    fmt::format("each of {} windows against the mean of the others of its workload ({} of {})",
                                all.size(), repeated.size(), workloads.size()),
                    single, all, others);
}

std::vector<DripleTransferRow> transfers_of(const std::vector<learn::ResourceStudyRow>& rows) {
  std::map<std::string, DripleTransferRow> by_setting;
  for (const learn::ResourceStudyRow& row : rows) {
    if (row.study != "transfer") continue;
    DripleTransferRow& transfer = by_setting[row.setting];
    transfer.setting = row.setting;
    transfer.test_workloads = row.test;
    const bool full = row.name == "full";
    (full ? transfer.full_workloads : transfer.tuned_workloads) = row.training;
    (full ? transfer.full_epochs : transfer.tuned_epochs) = row.epochs;
    (full ? transfer.full_error : transfer.tuned_error) = learn::mean_of(row.errors);
    (full ? transfer.full_seconds : transfer.tuned_seconds) = row.seconds;
  }
  std::vector<DripleTransferRow> transfers;
  for (const auto& [setting, row] : by_setting) {
    if (row.full_workloads > 0 && row.tuned_workloads > 0) transfers.push_back(row);
  }
  return transfers;
}

Result<DripleAccuracy> evaluate_driple(const DripleEvaluation& request) {
  const auto folder = data_dir();
  if (!folder) return folder.error();
  if (const Status named = check_setting_name(request.setting); !named.ok()) return named.error();
  for (const std::string& named : request.weights) {  // before the data is read, which takes longer
    auto driple = learn::make_driple();
    const Status loads = driple ? (*driple)->load(named) : Status(driple.error());
    if (!loads.ok()) return loads.error();
  }
  const auto data = data_in(request.data, request.setting);
  if (!data) return data.error();
  const learn::Selection test = learn::select_workloads(*data, request.setting, learn::Split::test);
  if (test.empty()) {
    return Error{"no workload of a test family is there", request.setting,
                 "name records of other families with --data"};
  }
  auto published = published_driple();
  if (!published) return published.error();
  DripleAccuracy accuracy;
  accuracy.published = *published;
  accuracy.setting = request.setting;
  accuracy.source = data->source;
  accuracy.training = std::ssize(learn::select_workloads(*data, request.setting, learn::Split::train));
  accuracy.test = std::ssize(test);
  std::set<std::string> families;
  for (const uint32_t i : test) families.insert(data->workloads[i].family);
  accuracy.test_families = {families.begin(), families.end()};
  accuracy.unjudged = unjudged_figures(*data, test);

  DripleEvaluator evaluator(*data, accuracy);
  std::vector<std::string> weights = request.weights;
  if (weights.empty()) weights = kept_weights(*folder / "weights");
  for (const std::string& path : weights) evaluator.evaluate_network(path);
  accuracy.rows.push_back(
      driple_row("simulation", "event by event, hosts fitted", *data, test, simulated_metrics(*data, test)));
  evaluator.evaluate_trees("simulation + trees", "trees correct it", learn::TreeBasis::simulation);
  evaluator.evaluate_trees("formulas + trees", "trees correct a few formulas", learn::TreeBasis::formulas);
  evaluator.evaluate_blend();
  const DripleRow again = repeatability(*data, test);
  if (again.mean_error() > 0) accuracy.rows.push_back(again);
  evaluator.evaluate_divided();
  DripleDataOptions by_kernels = request.data;
  by_kernels.gpu_times = GpuTimes::kernels;
  by_kernels.problem = nullptr;  // told once
  const auto kernels = data_with(by_kernels);
  evaluator.evaluate_others(kernels ? &*kernels : nullptr);
  evaluator.evaluate_models();
  const auto records = driple_records(request.data);
  if (!records) return records.error();
  const auto cost_models = load_cost_models();
  if (!cost_models) return cost_models.error();
  auto sensitivity = driple_sensitivity(*records, request.setting, *cost_models);
  if (!sensitivity) return sensitivity.error();
  accuracy.sensitivity = std::move(*sensitivity);
  return accuracy;
}

}  // namespace forerun
