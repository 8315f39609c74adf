#include "lab/eval/learned_suites.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <unordered_map>

#include "base/data_dir.h"
#include "base/datasets.h"
#include "base/nearest.h"
#include "base/provenance.h"
#include "lab/eval/iterations_alone.h"
#include "lab/eval/kept_results.h"
#include "lab/learn/predictors.h"
#include "lab/learn/training_session.h"
#include "predict/cost_models.h"
#include "predict/predict.h"
#include "records/data_files.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

struct LearnedSuite {
  const char* name;
  const char* traces_of;  // GPU of ETS traces; null: run records
  bool in_papers;
};
constexpr LearnedSuite kSuites[] = {{"ets-t4", "T4", true}, {"ets-2080ti", "2080Ti", false}, {"h200", nullptr, true}};
constexpr const char* kForerun = "forerun";
constexpr const char* kRandWire = "randwire";
constexpr const char* kIterationsWord = "iterations";
constexpr const char* kIterationsAndSamples = "iterations, op samples";
// A row whose predictor was told how slow the host of each judged run was, by readings taken beside it (host_us).
constexpr const char* kCalibrated = ", host calibrated";

Result<LearnedSuite> suite_named(const std::string& name) {
  std::vector<std::string> names;
  for (const LearnedSuite& suite : kSuites) {
    if (name == suite.name) return suite;
    names.emplace_back(suite.name);
  }
  return Error{"there is no suite '" + name + "'", "--suite", did_you_mean(name, names)};
}

Result<std::string> traces_folder(const LearnedSuiteOptions& options) {
  if (!options.traces.empty()) return options.traces;
  const auto folder = dataset("ets");
  if (!folder) return folder.error().within("the traces of the authors of ETS (or --traces, --cache)");
  return folder->string();
}

// Folders with a card, in the order of their names; none where nothing is trained.
Result<std::vector<std::string>> weight_folders(const std::string& suite, const LearnedSuiteOptions& options) {
  if (!options.weights.empty()) return options.weights;
  const auto data = data_dir();
  if (!data) return data.error();
  const fs::path folder = *data / "weights" / weights_folder(suite, options.division);
  std::vector<std::string> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (fs::exists(entry.path() / "card.json")) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The weights of a folder; an Error where they were trained on another division, and so perhaps on what is judged.
Result<learn::LoadedPredictor> load_judged(const std::string& folder, const learn::Division& division) {
  auto loaded = learn::load_weights(folder);
  if (!loaded || loaded->division == division) return loaded;
  return Error{fmt::format("these weights were trained on the split {} and cannot be judged on the split {}, part of "
                           "which they may have seen",
                           to_text(loaded->division), to_text(division)),
               folder, fmt::format("judge them with --split {}", to_text(loaded->division))};
}

// Kinds of data that weights learned from.
std::string learned_from(const learn::LoadedPredictor& loaded) {
  const std::string sources = loaded.trained_on + "; " + loaded.pretrained_on;
  const bool simulated = sources.find("simulated") != std::string::npos;
  return std::string(kIterationsWord) + (simulated ? ", simulation" : "");
}

// What predictors are judged on.
struct Examples {
  const learn::DataSet& data;
  learn::Selection test;
  learn::Selection ood;
  bool calibrated = false;  // predictors are told what was read of the host
};

std::string label_of(const std::string& name, const Examples& examples) {
  return examples.calibrated ? name + kCalibrated : name;
}

// How a data set is divided at random, in words.
std::string random_words(const learn::DataSet& data) {
  std::set<std::string> judged;
  std::set<std::string> others;
  for (const learn::Example& example : data.examples()) {
    if (example.split == learn::Split::ood) continue;
    (example.split == learn::Split::test ? judged : others).insert(example.configuration);
  }
  return fmt::format("configurations of all families split at random (seed {}), {} judged and {} others",
                     data.division.seed, judged.size(), others.size());
}

// Of predictions of what is out of distribution, those of randomly wired networks.
std::vector<learn::Evaluation> evaluate_randwire(const Examples& examples, std::span<const learn::Prediction> ood) {
  learn::Selection selection;
  std::vector<learn::Prediction> predictions;
  for (size_t i = 0; i < examples.ood.size(); ++i) {
    if (examples.data.examples()[examples.ood[i]].group != kRandWire) continue;
    selection.push_back(examples.ood[i]);
    predictions.push_back(ood[i]);
  }
  return learn::evaluate_all(examples.data, selection, predictions);
}

Result<SuiteRow> evaluate_weights(const std::string& folder, learn::LoadedPredictor& loaded, const Examples& examples) {
  const auto begun = std::chrono::steady_clock::now();
  const auto predict = [&](const learn::Selection& selection) {
    return learn::evaluate_all(examples.data, selection, loaded.predictor->predict(examples.data, selection));
  };
  SuiteRow row{.predictor = loaded.name,
               .label = label_of(fs::path(folder).filename().string(), examples),
               .trained_on = loaded.trained_on,
               .learned_from = learned_from(loaded),
               .evaluations = predict(examples.test)};
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  row.asked = static_cast<int64_t>(examples.test.size());
  const auto unlike = loaded.predictor->predict(examples.data, examples.ood);
  row.ood = learn::evaluate_all(examples.data, examples.ood, unlike);
  row.randwire = evaluate_randwire(examples, unlike);
  row.training = loaded.training;
  row.pretraining = loaded.pretraining;
  auto weights = fingerprint({fs::path(folder)});
  if (!weights) return weights.error();
  row.weights = std::move(*weights);
  return row;
}

// `forerun predict` on the same records, from their input fields alone.
Result<SuiteRow> evaluate_forerun(const LearnedSuiteOptions& options, const Examples& examples,
                                  const CostModels& cost_models) {
  const auto paths = suite_records(options);
  if (!paths) return paths.error();
  const auto files = record_files(*paths);
  if (!files) return files.error();
  std::unordered_map<std::string, learn::Prediction> by_id;
  for (const auto* selection : {&examples.test, &examples.ood}) {
    for (const uint32_t i : *selection) by_id[examples.data.examples()[i].id];
  }
  const auto begun = std::chrono::steady_clock::now();
  const auto take = [&](const RunRecord& record, const DataPlace& /*place*/) {
    const auto wanted = by_id.find(record.run.id);
    if (wanted == by_id.end() || !record.has_graph || wanted->second.iteration_ms) return;
    const auto device = cost_models.devices.find(record.run.environment.gpu);
    if (!device) return;
    auto run = for_device(record.run, *device);
    if (!run) return;
    if (!examples.calibrated) run->environment.calibration = {};
    const Prediction answer = predict(*run, *device, cost_models);
    wanted->second = {.iteration_ms = static_cast<double>(answer.times.iteration.value) / 1e6,
                      .gpu_busy_ms = static_cast<double>(answer.times.gpu_busy.value) / 1e6,
                      .peak_bytes = static_cast<double>(answer.memory.peak_allocated.value)};
  };
  const Status status =
      scan_files(*files, Fields::inputs, {.run = take, .sample = {}, .problem = [](const DataProblem&) {}});
  if (!status.ok()) return status.error();
  const auto predicted = [&](const learn::Selection& selection) {
    std::vector<learn::Prediction> predictions;
    for (const uint32_t i : selection) predictions.push_back(by_id[examples.data.examples()[i].id]);
    return predictions;
  };
  const auto unlike = predicted(examples.ood);
  auto models = cost_models_fingerprint();
  if (!models) return models.error();
  SuiteRow row{.predictor = kForerun,
               .label = label_of(kForerun, examples),
               .trained_on = "data/cost, data/host",
               .learned_from = kIterationsAndSamples,
               .evaluations = learn::evaluate_all(examples.data, examples.test, predicted(examples.test)),
               .ood = learn::evaluate_all(examples.data, examples.ood, unlike),
               .randwire = evaluate_randwire(examples, unlike),
               .asked = static_cast<int64_t>(examples.test.size() + examples.ood.size()),
               .weights = std::move(*models)};
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return row;
}

// With trees grown from iterations alone: times, since memory does not ask them.
Result<SuiteRow> evaluate_iterations_alone(const LearnedSuiteOptions& options, const Examples& examples) {
  const auto cost_models = cost_models_of_iterations(options.problem, options.control);
  if (!cost_models) return cost_models.error();
  auto row = evaluate_forerun(options, examples, *cost_models);
  if (!row) return row.error();
  row->label = kIterationsAlone;
  row->learned_from = kIterationsWord;
  for (auto* part : {&row->evaluations, &row->ood, &row->randwire}) {
    std::erase_if(*part, [](const learn::Evaluation& one) { return one.quantity == learn::Target::peak_bytes; });
  }
  return row;
}

// The rows of `forerun predict`: as it is, told how slow each host was, and as it would be with iterations alone.
Status add_forerun_rows(const LearnedSuiteOptions& options, const Examples& examples, const Examples* calibrated,
                        SuiteResult& result) {
  const auto cost_models = load_cost_models();
  if (!cost_models) return cost_models.error();
  for (const Examples* told : {&examples, calibrated}) {
    if (told == nullptr) continue;
    auto row = evaluate_forerun(options, *told, *cost_models);
    if (!row) return row.error();
    result.rows.push_back(std::move(*row));
  }
  if (options.iterations_alone) {
    auto row = evaluate_iterations_alone(options, examples);
    if (!row) return row.error();
    if (options.keep_iterations_alone) {
      if (Status kept = keep_iterations_alone(*row, result.data); !kept.ok()) return kept;
    }
    result.rows.push_back(std::move(*row));
  } else if (options.records.empty()) {
    auto kept = kept_iterations_alone(result.data);
    if (!kept) return kept.error();
    std::move(kept->begin(), kept->end(), std::back_inserter(result.rows));
  }
  return {};
}

Result<SuiteResult> evaluate_one(const LearnedSuite& suite, const LearnedSuiteOptions& options) {
  const auto folders = weight_folders(suite.name, options);
  if (!folders) return folders.error();
  for (const std::string& named : options.weights) {  // before the data is read, which takes longer
    if (!fs::exists(fs::path(named) / "card.json")) {
      return Error{"holds no trained weights (card.json)", named, "name a folder that `forerun train --out` wrote"};
    }
    if (const auto loaded = load_judged(named, options.division); !loaded) return loaded.error();
  }
  auto data = load_suite(suite.name, options);
  if (!data) return data.error();
  if (const Status divided = learn::divide(*data, options.division); !divided.ok()) return divided.error();
  const bool random = options.division.random;
  const auto examples_of = [&](const learn::DataSet& of, bool calibrated) {
    // What a random split keeps back is not out of distribution: its like may be trained on.
    return Examples{of, learn::select(of, learn::Split::test),
                    random ? learn::Selection() : learn::select(of, learn::Split::ood), calibrated};
  };
  const Examples calibrated = examples_of(*data, true);
  learn::DataSet without = *data;
  for (learn::Example& example : without.examples()) example.host_slowness = 0;
  const Examples examples = examples_of(without, false);
  const bool readings = std::any_of(calibrated.test.begin(), calibrated.test.end(),
                                    [&](uint32_t i) { return data->examples()[i].host_slowness > 0; });
  if (examples.test.empty()) {
    return Error{std::string("the suite '") + suite.name + "' has nothing to test on here", data->source,
                 "name data with a test split"};
  }
  auto published = published_figures(suite.name);
  if (!published) return published.error();
  if (random) std::erase_if(published->systems, [](const PublishedFigure& figure) { return !figure.seen; });
  SuiteResult result{.suite = suite.name,
                     .split = random ? random_words(*data) : "",
                     .division = options.division,
                     .data = data->source,
                     .date = today_utc(),
                     .machine = this_machine(),
                     .examples = static_cast<int64_t>(examples.test.size()),
                     .ood = static_cast<int64_t>(examples.ood.size()),
                     .published = std::move(*published)};
  Work work(options.control, "predictors", static_cast<int64_t>(folders->size()) + 1);
  if (random) {
    result.problems.emplace_back("forerun predict, which was fitted to iterations that are judged here");
  } else if (suite.traces_of == nullptr && options.caches.empty()) {
    const Status added = add_forerun_rows(options, examples, readings ? &calibrated : nullptr, result);
    if (!added.ok()) return added.error();
  }
  for (const std::string& folder : *folders) {
    if (const Status status = work.advance(); !status.ok()) return status.error();
    auto loaded = load_judged(folder, options.division);
    if (!loaded && !options.weights.empty()) return loaded.error();
    if (!loaded) {
      result.problems.push_back(loaded.error().message());
      continue;
    }
    auto row = evaluate_weights(folder, *loaded, examples);
    if (!row) return row.error();
    result.rows.push_back(std::move(*row));
    if (!readings) continue;
    auto told = evaluate_weights(folder, *loaded, calibrated);
    if (!told) return told.error();
    // Predictors that do not look at the host say the same.
    if (learn::differ(told->evaluations, result.rows.back().evaluations)) result.rows.push_back(std::move(*told));
  }
  if (const Status status = work.advance(); !status.ok()) return status.error();
  return result;
}

// Ablations whose weights are not kept, by their results.
void add_kept_results(SuiteResult& result) {
  const auto data = data_dir();
  if (!data) return;
  auto kept = read_kept_results((*data / "weights" / result.suite / "ablations.jsonl").string(), result.data);
  if (!kept) {
    result.problems.push_back(kept.error().message());
    return;
  }
  for (SuiteRow& row : *kept) {
    const bool judged = std::any_of(result.rows.begin(), result.rows.end(),
                                    [&](const SuiteRow& other) { return other.label == row.label; });
    if (!judged) result.rows.push_back(std::move(row));
  }
  auto few = learn::read_few_rows((*data / "weights" / result.suite / learn::kFewFile).string());
  if (few) {
    result.few = std::move(*few);
  } else {
    result.problems.push_back(few.error().message());
  }
}

}  // namespace

Result<std::vector<std::string>> suite_records(const LearnedSuiteOptions& options) {
  if (!options.records.empty()) return options.records;
  const auto data = data_dir();
  if (!data) return data.error();
  return std::vector<std::string>{(*data / "h200").string()};
}

Result<learn::DataSet> load_suite(const std::string& name, const LearnedSuiteOptions& options) {
  if (!options.caches.empty()) return learn::DataSet::load(options.caches);
  const auto suite = suite_named(name);
  if (!suite) return suite.error();
  if (suite->traces_of != nullptr) {
    const auto folder = traces_folder(options);
    if (!folder) return folder.error();
    return load_ets_data(*folder, suite->traces_of, options.most_a_group);
  }
  const auto records = suite_records(options);
  if (!records) return records.error();
  const auto folder = data_dir();
  if (!folder) return folder.error();
  const FamilySplit split{.split = (*folder / "h200" / "split.json").string(), .unnamed = options.unnamed};
  const auto cost_models = load_cost_models();
  if (!cost_models) return cost_models.error();
  return load_record_data(*records, split, options.problem, &*cost_models);
}

Result<SuiteResult> evaluate_learned(const std::string& name, const LearnedSuiteOptions& given) {
  LearnedSuiteOptions options = given;
  options.unnamed = learn::Split::test;
  const auto suite = suite_named(name);
  if (!suite) return suite.error();
  return evaluate_one(*suite, options);
}

Result<std::vector<SuiteResult>> evaluate_papers(const PapersOptions& options) {
  std::vector<SuiteResult> results;
  for (const LearnedSuite& suite : kSuites) {
    if (!suite.in_papers) continue;
    auto result = evaluate_learned(
        suite.name,
        {.traces = options.traces, .records = options.records, .problem = options.problem, .control = options.control});
    if (!result) {
      auto published = published_figures(suite.name);
      if (!published) return published.error();
      result = SuiteResult{.suite = suite.name,
                           .data = "none",
                           .published = std::move(*published),
                           .problems = {result.error().message()}};
    }
    add_kept_results(*result);
    result->ablations = true;
    results.push_back(std::move(*result));
  }
  return results;
}

}  // namespace forerun
