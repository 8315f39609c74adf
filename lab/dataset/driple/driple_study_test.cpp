// Studies of predictors of resources: what is left out stays unseen, folds hold everything once, rows are kept and
// replaced, and data come back from files as they went.
#include "lab/dataset/driple/driple_study.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "lab/dataset/driple/driple_rows.h"
#include "lab/dataset/driple/resource_file.h"

namespace forerun::learn {
namespace {

namespace fs = std::filesystem;

// Families f0 to f5 with two models each; f5 is a test family. Simulated workloads are of f0 to f4.
ResourceData study_data() {
  ResourceData data;
  const auto add = [&](int family, const std::string& model, const std::string& setting, double value) {
    ResourceWorkload workload;
    workload.id = setting + "/" + model + "/" + std::to_string(data.workloads.size());
    workload.family = "f" + std::to_string(family);
    workload.model = model;
    workload.setting = setting;
    workload.mode = "sync";
    workload.split = family == 5 ? Split::test : Split::train;
    workload.globals = {1.5F};
    workload.columns = {0.25F, 2};
    ResourceMetrics window;
    window.fill(value);
    add_window(workload, window);
    data.workloads.push_back(workload);
  };
  for (int i = 0; i < 36; ++i) add(i % 6, "f" + std::to_string(i % 6) + (i < 12 ? "-small" : "-large"), "P1w2-10G", 10);
  for (int i = 0; i < 20; ++i) add(i % 5, "f" + std::to_string(i % 5), "sim:P1w2-10G", 4);
  data.column_names = {"a", "b"};
  data.source = "made up";
  Example example;
  example.id = "only";
  data.iterations.add(example);
  return data;
}

// Says the mean of what it was trained or tuned on last, and notes what it was shown.
struct Seen {
  std::vector<Selection> trained, tuned, stopped_by;
};

class MeanPredictor : public ResourcePredictor {
 public:
  explicit MeanPredictor(Seen* seen) : seen_(seen) {}
  [[nodiscard]] Settings settings() const override { return {}; }
  Result<TrainingLog> train(const ResourceData& data, const Selection& training, const Selection& validation,
                            const TrainOptions& /*options*/) override {
    seen_->trained.push_back(training);
    seen_->stopped_by.push_back(validation);
    return learn_from(data, training);
  }
  Result<TrainingLog> transfer(const ResourceData& data, const Selection& training, const Selection& validation,
                               const TrainOptions& /*options*/) override {
    seen_->tuned.push_back(training);
    seen_->stopped_by.push_back(validation);
    return learn_from(data, training);
  }
  std::vector<ResourceMetrics> predict(const ResourceData& /*data*/, const Selection& workloads) override {
    return std::vector<ResourceMetrics>(workloads.size(), mean_);
  }
  [[nodiscard]] Status save(const std::string& /*folder*/) const override { return {}; }
  Status load(const std::string& /*folder*/) override { return {}; }

 private:
  Result<TrainingLog> learn_from(const ResourceData& data, const Selection& training) {
    double sum = 0;
    for (const uint32_t i : training) sum += data.workloads[i].measured[0];
    mean_.fill(sum / static_cast<double>(training.size()));
    TrainingLog log;
    log.epochs.resize(3);
    log.seconds = 2;
    return log;
  }
  Seen* seen_;
  ResourceMetrics mean_{};
};

MakeResourcePredictor maker(Seen& seen) {
  return [&seen]() -> Result<std::unique_ptr<ResourcePredictor>> {
    return std::unique_ptr<ResourcePredictor>(std::make_unique<MeanPredictor>(&seen));
  };
}

std::set<std::string> families_in(const ResourceData& data, const Selection& workloads) {
  std::set<std::string> families;
  for (const uint32_t i : workloads) families.insert(data.workloads[i].family);
  return families;
}

TEST(ResourceStudy, FoldsHoldEveryWorkloadOnceAndNoGroupOnBothSides) {
  const ResourceData data = study_data();
  const Selection all = select_workloads(data, "P1w2-10G", Split::train);
  for (const JudgedOn on : {JudgedOn::family_folds, JudgedOn::model_folds}) {
    std::multiset<uint32_t> left_out;
    const std::vector<ResourceFold> folds = resource_folds(data, all, on, 3);
    ASSERT_EQ(folds.size(), 3U);
    for (const ResourceFold& fold : folds) {
      EXPECT_EQ(fold.training.size() + fold.validation.size(), all.size());
      left_out.insert(fold.validation.begin(), fold.validation.end());
      std::set<std::string> inside;
      const auto group = [&](uint32_t i) {
        return on == JudgedOn::family_folds ? data.workloads[i].family : data.workloads[i].model;
      };
      for (const uint32_t i : fold.training) inside.insert(group(i));
      for (const uint32_t i : fold.validation) EXPECT_FALSE(inside.contains(group(i)));
    }
    EXPECT_EQ(left_out, std::multiset<uint32_t>(all.begin(), all.end()));
  }
}

TEST(ResourceStudy, TestFamiliesAreJudgedAndNeverShown) {
  const ResourceData data = study_data();
  Seen seen;
  ResourceJob job{.study = "s", .name = "n", .setting = "P1w2-10G"};
  job.recipe.pretrain = true;
  const auto row = run_job(job, data, maker(seen));
  ASSERT_TRUE(row) << row.error().message();
  EXPECT_EQ(row->test, 6);
  EXPECT_EQ(row->training, 30);
  EXPECT_DOUBLE_EQ(row->errors[0], 0);  // tuned on what is measured, not left at what is simulated
  EXPECT_EQ(row->epochs, 3);
  ASSERT_EQ(seen.trained.size(), 1U);
  EXPECT_EQ(seen.trained[0].size(), 20U);  // all simulated ones
  ASSERT_EQ(seen.tuned.size(), 1U);
  EXPECT_FALSE(families_in(data, seen.tuned[0]).contains("f5"));
  EXPECT_FALSE(families_in(data, seen.stopped_by[1]).contains("f5"));
}

TEST(ResourceStudy, PretrainingDoesNotSeeFamiliesThatAreLeftOut) {
  const ResourceData data = study_data();
  Seen seen;
  ResourceJob job{.study = "s", .name = "n", .setting = "P1w2-10G", .recipe = {}, .on = JudgedOn::family_folds};
  job.recipe.pretrain = true;
  job.folds = 5;
  const auto row = run_job(job, data, maker(seen));
  ASSERT_TRUE(row) << row.error().message();
  EXPECT_EQ(row->test, 30);
  ASSERT_EQ(seen.trained.size(), 5U);
  for (size_t fold = 0; fold < 5; ++fold) {
    EXPECT_EQ(seen.trained[fold].size(), 16U);  // four of five families
    std::set<std::string> shown = families_in(data, seen.tuned[fold]);
    shown.merge(families_in(data, seen.stopped_by[2 * fold + 1]));
    EXPECT_EQ(shown, families_in(data, seen.trained[fold]));
  }
  job.fold = 2;
  const auto one = run_job(job, data, maker(seen));
  ASSERT_TRUE(one);
  EXPECT_EQ(one->test, 6);
}

TEST(ResourceStudy, FewerSamplesAreSpreadAndPretrainingNeedsSimulatedOnes) {
  EXPECT_EQ(some_of({0, 1, 2, 3, 4, 5, 6, 7, 8}, 3), (Selection{0, 3, 6}));
  EXPECT_EQ(some_of({4, 5}, 0), (Selection{4, 5}));
  EXPECT_EQ(some_of({4, 5}, 7), (Selection{4, 5}));
  ResourceData data = study_data();
  data.workloads.resize(36);
  Seen seen;
  ResourceJob job{.study = "s", .name = "n", .setting = "P1w2-10G"};
  job.samples = 8;
  job.recipe.options.validation = 0;
  const auto row = run_job(job, data, maker(seen));
  ASSERT_TRUE(row);
  EXPECT_EQ(seen.trained[0].size(), 8U);
  job.recipe.pretrain = true;
  EXPECT_FALSE(run_job(job, data, maker(seen)));
}

TEST(ResourceStudy, OtherSettingsAreOfSeenFamiliesAlone) {
  ResourceData data = study_data();
  for (size_t i = 0; i < 36; i += 2) data.workloads[i].setting = "P1w2-1G";  // f0, f2, f4
  Seen seen;
  ResourceJob job{.study = "s", .name = "n", .setting = "P1w2-10G", .recipe = {}, .on = JudgedOn::family_folds};
  job.recipe.options.validation = 0;
  job.all_settings = true;
  job.folds = 2;
  ASSERT_TRUE(run_job(job, data, maker(seen)));
  for (const Selection& trained : seen.trained) {
    const std::set<std::string> families = families_in(data, trained);
    EXPECT_EQ(families.size(), 1U);  // of f1 and f3 one is left out; f5 is a test family
  }
  job.on = JudgedOn::test_families;
  for (size_t i = 0; i < 6; ++i) data.workloads[i].setting = "P1w2-10G";
  ASSERT_TRUE(run_job(job, data, maker(seen)));
  const std::set<std::string> families = families_in(data, seen.trained.back());
  EXPECT_EQ(families, (std::set<std::string>{"f0", "f1", "f2", "f3", "f4"}));
  EXPECT_EQ(seen.trained.back().size(), 30U);
}

TEST(ResourceStudy, NormalisedErrorIsOverTheRange) {
  ResourceData data;
  for (const double value : {10.0, 20.0}) {
    ResourceWorkload workload;
    ResourceMetrics window;
    window.fill(value);
    add_window(workload, window);
    data.workloads.push_back(workload);
  }
  ResourceMetrics off;
  off.fill(15);
  EXPECT_NEAR(normalised_rmse(data, {0, 1}, {off, off}), 0.5, 1e-12);
}

class StudyFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              (std::string("forerun_study_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(StudyFolder, KeepsRowsAndReplacesThoseOfTheSameName) {
  ResourceStudyRow row{.study = "ablations", .name = "a", .setting = "P1w2-10G", .training = 3, .test = 4};
  row.errors.fill(0.25);
  ResourceStudyRow other = row;
  other.name = "b";
  ASSERT_TRUE(write_study_rows(folder_.string(), {row, other}).ok());
  row.nrmse = 0.5;
  ASSERT_TRUE(write_study_rows(folder_.string(), {row}).ok());
  const auto rows = read_study_rows(folder_.string());
  ASSERT_TRUE(rows) << rows.error().message();
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ((*rows)[0].name, "a");
  EXPECT_DOUBLE_EQ((*rows)[0].nrmse, 0.5);
  EXPECT_DOUBLE_EQ((*rows)[1].nrmse, 0);
  EXPECT_DOUBLE_EQ((*rows)[1].errors[11], 0.25);
  std::ofstream(folder_ / kStudiesFile, std::ios::app) << "{\"study\":1}\n";
  EXPECT_FALSE(read_study_rows(folder_.string()));
  EXPECT_TRUE(read_study_rows((folder_ / "nothing").string())->empty());
}

TEST_F(StudyFolder, DataComeBackAsTheyWent) {
  ResourceData data = study_data();
  ResourceMetrics window;
  window.fill(30);
  add_window(data.workloads[0], window);
  const std::string path = (folder_ / "data.bin").string();
  ASSERT_TRUE(save_resource_data(data, path).ok());
  const auto back = load_resource_data(path);
  ASSERT_TRUE(back) << back.error().message();
  ASSERT_EQ(back->workloads.size(), data.workloads.size());
  EXPECT_EQ(back->column_names, data.column_names);
  EXPECT_EQ(back->source, data.source);
  const ResourceWorkload& first = back->workloads[0];
  EXPECT_EQ(first.windows.size(), 2U);
  EXPECT_DOUBLE_EQ(first.measured[5], 20);
  EXPECT_EQ(first.globals, data.workloads[0].globals);
  EXPECT_EQ(back->workloads[5].split, Split::test);

  std::ofstream(path + ".json") << R"({"source":"","columns":[],"workloads":[{"id":"x"}]})";
  EXPECT_FALSE(load_resource_data(path));
}

}  // namespace
}  // namespace forerun::learn
