#include "api/suites.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/data_dir.h"
#include "base/nearest.h"
#include "learn/predictors.h"
#include "learn/training_session.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

struct Suite {
  const char* name;
  const char* traces_of;  // GPU of ETS traces; null: run records
};
constexpr Suite kSuites[] = {{"ets-t4", "T4"}, {"ets-2080ti", "2080Ti"}, {"h200", nullptr}};
constexpr const char* kSeeds = "seeds";

Result<Suite> suite_named(const std::string& name) {
  for (const Suite& suite : kSuites) {
    if (name == suite.name) return suite;
  }
  return Error{"there is no suite '" + name + "'", "", did_you_mean(name, suite_names())};
}

Result<std::string> traces_folder(const SuiteOptions& options) {
  if (!options.traces.empty()) return options.traces;
  const auto data = data_dir();
  if (!data) return data.error();
  const fs::path folder = fs::absolute(*data).parent_path().parent_path() / "shared" / "data" / "ets";
  if (!fs::is_directory(folder)) {
    return Error{"the traces of the authors of ETS are not there", folder.lexically_normal().string(),
                 "name their folder with --traces, or a data set written before with --cache"};
  }
  return folder.string();
}

Result<std::vector<std::string>> weight_folders(const std::string& suite, const SuiteOptions& options) {
  if (!options.weights.empty()) return options.weights;
  const auto data = data_dir();
  if (!data) return data.error();
  const fs::path folder = *data / "weights" / suite;
  std::vector<std::string> found;
  if (fs::is_directory(folder)) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (fs::exists(entry.path() / "card.json")) found.push_back(entry.path().string());
    }
  }
  std::sort(found.begin(), found.end());
  if (found.empty()) {
    return Error{"there are no weights for the suite '" + suite + "'", folder.string(),
                 "train some: forerun train ets --suite " + suite + " --out " + (folder / "ets").string()};
  }
  return found;
}

Result<SuiteRow> judge(const std::string& folder, const learn::DataSet& data, const learn::Selection& test) {
  auto loaded = learn::load_weights(folder);
  if (!loaded) return loaded.error();
  const auto begun = std::chrono::steady_clock::now();
  const auto predictions = loaded->predictor->predict(data, test);
  SuiteRow row{.predictor = loaded->name,
               .label = fs::path(folder).filename().string(),
               .trained_on = loaded->trained_on,
               .evaluations = learn::evaluate_all(data, test, predictions)};
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return row;
}

Result<SuiteResult> evaluate_one(const std::string& suite, const SuiteOptions& options) {
  const auto folders = weight_folders(suite, options);
  if (!folders) return folders.error();
  const auto data = load_suite(suite, options);
  if (!data) return data.error();
  const learn::Selection test = learn::select(*data, learn::Split::test);
  if (test.empty()) {
    return Error{"the suite '" + suite + "' has nothing to test on here", data->source, "name data with a test split"};
  }
  SuiteResult result{.suite = suite, .data = data->source, .examples = static_cast<int64_t>(test.size())};
  for (const std::string& folder : *folders) {
    auto row = judge(folder, *data, test);
    if (!row) return row.error();
    result.rows.push_back(std::move(*row));
  }
  return result;
}

}  // namespace

std::vector<std::string> suite_names() {
  std::vector<std::string> names;
  for (const Suite& suite : kSuites) names.emplace_back(suite.name);
  names.emplace_back(kSeeds);
  return names;
}

Result<learn::DataSet> load_suite(const std::string& name, const SuiteOptions& options) {
  if (!options.cache.empty()) return learn::DataSet::load(options.cache);
  const auto suite = suite_named(name);
  if (!suite) return suite.error();
  if (suite->traces_of != nullptr) {
    const auto folder = traces_folder(options);
    if (!folder) return folder.error();
    return load_ets_data(*folder, suite->traces_of, options.most_a_group);
  }
  std::vector<std::string> records = options.records;
  if (records.empty()) {
    const auto data = data_dir();
    if (!data) return data.error();
    records.push_back((*data / "h200").string());
  }
  return load_record_data(records, options.problem);
}

Result<std::vector<SuiteResult>> evaluate_suite(const std::string& name, const SuiteOptions& options) {
  std::vector<SuiteResult> results;
  const std::vector<std::string> parts =
      name == kSeeds ? std::vector<std::string>{"ets-t4", "h200"} : std::vector<std::string>{name};
  for (const std::string& part : parts) {
    if (const auto known = suite_named(part); !known) return known.error();
    auto result = evaluate_one(part, options);
    if (!result) return result.error();
    results.push_back(std::move(*result));
  }
  return results;
}

}  // namespace forerun
