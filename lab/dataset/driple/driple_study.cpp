#include "lab/dataset/driple/driple_study.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/check.h"

namespace forerun::learn {
namespace {

namespace fs = std::filesystem;

// Simulated workloads, less the families that are to stay unseen.
Selection simulated_without(const ResourceData& data, const std::set<std::string>& unseen) {
  Selection chosen;
  for (uint32_t i = 0; i < data.workloads.size(); ++i) {
    const ResourceWorkload& workload = data.workloads[i];
    if (workload.setting.rfind(kSimulatedPrefix, 0) == 0 && !unseen.contains(workload.family)) chosen.push_back(i);
  }
  return chosen;
}

// Families of training workloads that a recipe is not given: they are left out to be judged on.
std::set<std::string> families_without(const ResourceData& data, const Selection& workloads) {
  std::set<std::string> unseen;
  for (const ResourceWorkload& workload : data.workloads) unseen.insert(workload.family);
  for (const uint32_t i : workloads) unseen.erase(data.workloads[i].family);
  return unseen;
}

ResourceFold fold_by_share(const ResourceData& data, const Selection& workloads, uint64_t seed, double share) {
  if (share <= 0) return {workloads, {}};
  return resource_fold(data, workloads, seed, share);
}

// The predictor that tuning starts from: read, or trained on simulated workloads.
Status start_of(const ResourceRecipe& recipe, const ResourceData& data, const std::set<std::string>& unseen,
                TrainedResources& trained) {
  if (!recipe.from.empty()) return trained.predictor->load(recipe.from);
  const Selection simulated = simulated_without(data, unseen);
  if (simulated.empty()) {
    return Error{"there is no simulated workload to pre-train on", "", "ask for some with --pretrain"};
  }
  TrainOptions options = recipe.options;
  options.epochs = recipe.pretrain_epochs;
  options.patience = 0;
  const auto log = trained.predictor->train(data, simulated, {}, options);
  if (!log) return log.error();
  trained.pretraining_seconds = log->seconds;
  return recipe.keep_pretrained.empty() ? Status()
                                        : keep_resource_predictor(*trained.predictor, recipe.keep_pretrained);
}

Result<TrainedResources> train_unseen(const ResourceRecipe& recipe, const ResourceData& data,
                                      const Selection& workloads, const std::set<std::string>& unseen,
                                      const MakeResourcePredictor& make) {
  auto predictor = make();
  if (!predictor) return predictor.error();
  TrainedResources trained;
  trained.predictor = std::move(*predictor);
  const bool tuned = recipe.pretrain || !recipe.from.empty();
  const double share = tuned ? recipe.tune_validation : recipe.options.validation;
  const ResourceFold fold = fold_by_share(data, workloads, recipe.options.seed, share);
  trained.training = std::ssize(fold.training);
  trained.validation = std::ssize(fold.validation);
  TrainOptions options = recipe.options;
  if (tuned) {
    if (const Status status = start_of(recipe, data, unseen, trained); !status.ok()) return status.error();
    options.epochs = recipe.tune_epochs;
    options.learning_rate = recipe.tune_rate;
    if (recipe.pretrain) {
      options.settings.try_emplace("tune", "all");
      options.settings.try_emplace("rescale", "no");
    }
  }
  auto log = tuned ? trained.predictor->transfer(data, fold.training, fold.validation, options)
                   : trained.predictor->train(data, fold.training, fold.validation, options);
  if (!log) return log.error();
  trained.log = std::move(*log);
  return trained;
}

// Measured training workloads of every setting, of the families that these are of.
Selection in_all_settings(const ResourceData& data, const Selection& workloads) {
  std::set<std::string> families;
  for (const uint32_t i : workloads) families.insert(data.workloads[i].family);
  Selection chosen;
  for (uint32_t i = 0; i < data.workloads.size(); ++i) {
    const ResourceWorkload& workload = data.workloads[i];
    const bool simulated = workload.setting.rfind(kSimulatedPrefix, 0) == 0;
    if (!simulated && workload.labels == Labels::measured && workload.split == Split::train &&
        families.contains(workload.family)) {
      chosen.push_back(i);
    }
  }
  return chosen;
}

void evaluate_into(const ResourceData& data, const Selection& test, const std::vector<ResourceMetrics>& predicted,
                   ResourceStudyRow& row) {
  row.test = std::ssize(test);
  row.errors = resource_errors(data, test, predicted);
  row.nrmse = normalised_rmse(data, test, predicted);
}

}  // namespace

Status keep_resource_predictor(const ResourcePredictor& predictor, const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return Error{"cannot be made: " + failed.message(), folder, "check the path"};
  return predictor.save(folder);
}

Selection some_of(const Selection& all, int64_t count) {
  if (count <= 0 || count >= std::ssize(all)) return all;
  Selection some;
  for (int64_t i = 0; i < count; ++i) some.push_back(all[static_cast<size_t>(i * std::ssize(all) / count)]);
  return some;
}

double normalised_rmse(const ResourceData& data, const Selection& workloads,
                       const std::vector<ResourceMetrics>& predicted) {
  CHECK(workloads.size() == predicted.size(), "every workload has a prediction");
  double sum = 0;
  size_t judged = 0;
  for (size_t m = 0; m < kResourceMetrics; ++m) {
    double squares = 0;
    size_t count = 0;
    double least = 1e300;
    double most = -1e300;
    for (size_t i = 0; i < workloads.size(); ++i) {
      if (!data.workloads[workloads[i]].judged[m]) continue;
      ++count;
      const double measured = data.workloads[workloads[i]].measured[m];
      squares += (predicted[i][m] - measured) * (predicted[i][m] - measured);
      least = std::min(least, measured);
      most = std::max(most, measured);
    }
    if (count == 0) continue;
    ++judged;
    sum += std::sqrt(squares / static_cast<double>(count)) / std::max(most - least, 1e-9);
  }
  return judged > 0 ? sum / static_cast<double>(judged) : 0;
}

std::vector<ResourceFold> resource_folds(const ResourceData& data, const Selection& from, JudgedOn on, int64_t folds) {
  const auto name_of_group = [&](uint32_t i) -> const std::string& {
    return on == JudgedOn::model_folds ? data.workloads[i].model : data.workloads[i].family;
  };
  std::map<std::string, int64_t> counts;
  for (const uint32_t i : from) ++counts[name_of_group(i)];
  std::vector<std::pair<int64_t, std::string>> groups;  // the largest first
  for (const auto& [name, count] : counts) groups.emplace_back(-count, name);
  std::sort(groups.begin(), groups.end());
  const auto parts = static_cast<size_t>(std::clamp<int64_t>(folds, 1, std::ssize(groups)));
  std::vector<int64_t> taken(parts);
  std::map<std::string, size_t> part_of;
  for (const auto& [count, name] : groups) {
    const auto least = static_cast<size_t>(std::min_element(taken.begin(), taken.end()) - taken.begin());
    part_of[name] = least;
    taken[least] -= count;
  }
  std::vector<ResourceFold> all(parts);
  for (const uint32_t i : from) {
    for (size_t part = 0; part < parts; ++part) {
      (part_of[name_of_group(i)] == part ? all[part].validation : all[part].training).push_back(i);
    }
  }
  return all;
}

Result<TrainedResources> train_by(const ResourceRecipe& recipe, const ResourceData& data, const Selection& workloads,
                                  const MakeResourcePredictor& make) {
  // Simulated workloads are of training families alone; all of those may be seen.
  return train_unseen(recipe, data, workloads, {}, make);
}

Result<ResourceStudyRow> run_job(const ResourceJob& job, const ResourceData& data, const MakeResourcePredictor& make,
                                 std::unique_ptr<ResourcePredictor>* kept) {
  Selection all = select_workloads(data, job.setting, Split::train);
  ResourceStudyRow row{.study = job.study, .name = job.name, .setting = job.setting};
  const auto note = [&row](const TrainedResources& trained, double share) {
    row.validation_error += share * trained.log.best_validation_error;
    row.seconds += trained.log.seconds;
    row.pretraining_seconds += trained.pretraining_seconds;
    row.epochs = std::max(row.epochs, std::ssize(trained.log.epochs));
  };
  if (job.on == JudgedOn::test_families) {
    Selection some = some_of(all, job.samples);
    if (job.all_settings) some = in_all_settings(data, some);
    const Selection test = select_workloads(data, job.setting, Split::test);
    row.training = std::ssize(some);
    auto trained = train_by(job.recipe, data, some, make);
    if (!trained) return trained.error();
    note(*trained, 1);
    evaluate_into(data, test, trained->predictor->predict(data, test), row);
    if (kept != nullptr) *kept = std::move(trained->predictor);
    return row;
  }
  if (job.on == JudgedOn::model_folds) {
    const Selection test = select_workloads(data, job.setting, Split::test);
    all.insert(all.end(), test.begin(), test.end());
    std::sort(all.begin(), all.end());
  }
  std::vector<ResourceFold> folds = resource_folds(data, all, job.on, job.folds);
  if (job.fold >= 0 && job.fold < std::ssize(folds)) folds = {folds[static_cast<size_t>(job.fold)]};
  Selection judged;
  std::vector<ResourceMetrics> predicted;
  for (const ResourceFold& fold : folds) {
    Selection some = some_of(fold.training, job.samples);
    if (job.all_settings && job.on == JudgedOn::family_folds) some = in_all_settings(data, some);
    row.training = std::max(row.training, std::ssize(some));
    const std::set<std::string> unseen =
        job.on == JudgedOn::family_folds ? families_without(data, fold.training) : std::set<std::string>();
    const auto trained = train_unseen(job.recipe, data, some, unseen, make);
    if (!trained) return trained.error();
    note(*trained, 1 / static_cast<double>(folds.size()));
    const std::vector<ResourceMetrics> answers = trained->predictor->predict(data, fold.validation);
    judged.insert(judged.end(), fold.validation.begin(), fold.validation.end());
    predicted.insert(predicted.end(), answers.begin(), answers.end());
  }
  evaluate_into(data, judged, predicted, row);
  return row;
}

}  // namespace forerun::learn
