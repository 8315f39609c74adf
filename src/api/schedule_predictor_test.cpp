// Measured predictors and step times of jobs that name a model, as `forerun schedule` uses them.
#include "cluster/schedule_predictor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "api/schedule.h"
#include "base/data_dir.h"
#include "predict/setup_text.h"

namespace forerun {
namespace {

TEST(MeasuredErrors, OfEveryPredictorComeFromTheEvaluations) {
  for (const char* name : {"hybrid", "ets", "dnnperf", "dnnperf-time", "ets@ets-t4"}) {
    const auto errors = find_measured_errors(name);
    ASSERT_TRUE(errors.ok()) << errors.error().message();
    EXPECT_GT(errors->examples, 100) << name;
    EXPECT_GE(errors->ratios.size(), 20U) << name;
    EXPECT_NE(errors->source.find("data/evaluations/"), std::string::npos);
    // The spread that is drawn from has about the mean error that is stated.
    double sum = 0;
    for (size_t i = 0; i + 1 < errors->ratios.size(); ++i) {
      sum += std::abs((errors->ratios[i] + errors->ratios[i + 1]) / 2 - 1);
    }
    EXPECT_NEAR(sum / static_cast<double>(errors->ratios.size() - 1), errors->mean, 0.25 * errors->mean) << name;
  }
  EXPECT_NE(parse_predictor("perfct").error().message().find("did you mean perfect"), std::string::npos);
  EXPECT_NE(parse_predictor("error:x").error().message().find("write error:8"), std::string::npos);
  EXPECT_TRUE(parse_predictor("error-like:ets")->is_asked() && parse_predictor("error-like:ets@ets-t4")->is_random());
  EXPECT_EQ(parse_predictor("error-like:ets")->errors.ratios, find_measured_errors("ets")->ratios);
  EXPECT_NE(parse_predictor("error-like:etts").error().message().find("did you mean ets"), std::string::npos);
  EXPECT_NE(find_measured_errors("etts").error().message().find("did you mean ets"), std::string::npos);
  EXPECT_NE(find_measured_errors("ets@h20").error().message().find("h200"), std::string::npos);
}

// The errors that are kept in data/evaluations are those of the weights and cost models beside them.
TEST(MeasuredErrors, AreOfTheWeightsOfToday) {
  for (const char* name : {"hybrid", "ets", "dnnperf", "mlp", "gbdt", "ets@ets-t4", "hybrid@other-gpus",
                           "habitat@other-gpus", "neusight@other-gpus"}) {
    EXPECT_EQ(find_measured_errors(name)->source.find("STALE"), std::string::npos)
        << find_measured_errors(name)->source << "\n(write it again: forerun-lab eval --suite SUITE --json)";
  }
  EXPECT_NE(find_measured_errors("ets@h200-measured-only")->source.find("STALE"), std::string::npos);
}

TEST(LearnedPredictors, AreNoErrorsDrawnUnderTheirNames) {
  for (const char* name : {"ets", "dnnperf", "birnn", "arnn", "mlp", "gbdt", "brp-nas", "habitat", "neusight"}) {
    const auto predictor = parse_predictor(name);
    ASSERT_TRUE(predictor.ok()) << predictor.error().message();
    EXPECT_EQ(predictor->kind, cluster::PredictorKind::learned) << name;
    EXPECT_TRUE(predictor->errors.ratios.empty()) << name;
  }
}

cluster::StepQuestion question(const std::string& model, const std::string& gpu, int32_t gpus) {
  return {{.model = model, .batch = 32}, gpu, gpus};
}

Result<cluster::CommunicationModel> links_of(const cluster::Cluster& cluster, const NetworkOptions& options) {
  return communication_of(cluster, options, *load_devices(*data_dir() / "devices"));
}

TEST(StepPredictor, AddsWhatAGangSaysToItself) {
  cluster::Cluster cluster = *cluster::parse_cluster("h200=16");
  cluster.pools[0].gpus_per_node = 4;
  const auto links = links_of(cluster, {});
  ASSERT_TRUE(links.ok()) << links.error().message();
  StepPredictor steps(cluster, std::make_shared<cluster::CommunicationModel>(*links));
  const auto one = steps(question("resnet50", "h200", 1));
  const auto node = steps(question("resnet50", "h200", 4));
  const auto two = steps(question("resnet50", "h200", 8));
  ASSERT_TRUE(one.ok()) << one.error().message();
  EXPECT_NEAR(static_cast<double>(one->gradients.value), 25.557e6 * 4, 1e6);  // ResNet-50 has 25.6 million parameters
  EXPECT_GT(node->step, one->step);
  EXPECT_GT(two->step, node->step);
  EXPECT_LT(node->step.value, one->step.value + 1'000'000);  // NVLink hides most of it
  EXPECT_NE(steps(question("resnet5", "h200", 1)).error().message().find("resnet50"), std::string::npos);
  EXPECT_FALSE(steps(question("resnet50", "h2000", 1)).ok());
  cluster::StepQuestion broken = question("resnet50", "h200", 1);
  broken.configuration.fault = "'layers' is no KEY=VALUE";
  EXPECT_NE(steps(broken).error().message().find("KEY=VALUE"), std::string::npos);
  EXPECT_FALSE(links_of(cluster, {.link = "pigeons"}).ok());
}

TEST(StepPredictor, GangsExchangeWhatIsTrainedOnceAnUpdate) {
  cluster::Cluster cluster = *cluster::parse_cluster("h200=16");
  cluster.pools[0].gpus_per_node = 8;
  const auto links = links_of(cluster, {});
  ASSERT_TRUE(links.ok()) << links.error().message();
  StepPredictor steps(cluster, std::make_shared<cluster::CommunicationModel>(*links));
  const auto asked = [&](int32_t gpus, const SetupText& words) {
    cluster::StepQuestion one = question("gpt2_small", "h200", gpus);
    one.configuration.batch = 2;
    one.configuration.setup = *parse_setup(words);
    const auto answer = steps(one);
    EXPECT_TRUE(answer.ok()) << answer.error().message();
    return answer.ok() ? *answer : cluster::StepAnswer{};
  };
  const auto exposed = [&](const SetupText& words) { return asked(16, words).step - asked(1, words).step; };
  const auto all = asked(1, {}), half = asked(1, {.precision = "bf16"}), adapters = asked(1, {.lora = "8"});
  EXPECT_EQ(all.gradients, Bytes(124439808LL * 4));
  EXPECT_EQ(half.gradients, Bytes(124439808LL * 2));
  EXPECT_EQ(adapters.gradients, Bytes(12LL * 8 * (768 + 3 * 768) * 4));  // 12 blocks, c_attn from 768 to 2304
  EXPECT_GT(exposed({}), exposed({.lora = "8"}));
  // Four micro-batches exchange as much as one, and hide no more of it.
  EXPECT_GT(asked(1, {.accumulate = 4}).step.value, 3 * all.step.value);
  EXPECT_NEAR(static_cast<double>(exposed({.accumulate = 4}).value), static_cast<double>(exposed({}).value),
              0.1 * static_cast<double>(all.step.value));
}

class ScheduledFile : public testing::Test {
 protected:
  ScheduledFile() : path_(std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_named.csv")) {}
  ~ScheduledFile() override { std::filesystem::remove(path_); }

  Result<ScheduleAnswer> run(const std::string& text, const std::string& predictor) {
    std::ofstream(path_) << text;
    ScheduleRequest request;
    request.file = path_.string();
    request.format = *parse_job_format("csv");
    request.cluster = *cluster::parse_cluster("h200=1");
    request.policies = {*cluster::parse_policy("sjf")};
    request.predictor = *parse_predictor(predictor);
    return schedule(request);
  }
  std::filesystem::path path_;
};

TEST_F(ScheduledFile, HybridPredictsJobsThatNameAModel) {
  // By their stated durations the second is shorter; by what they train the first is, by far.
  const std::string text =
      "id,model,batch,iterations,duration\n"
      "first,resnet18,8,10,300\n"
      "second,vgg19,128,1000,200\n";
  const auto perfect = run(text, "perfect");
  ASSERT_TRUE(perfect.ok()) << perfect.error().message();
  EXPECT_DOUBLE_EQ(perfect->report.outcomes[0].mean().mean_jct, (200 + 500) / 2.0);
  const auto hybrid = run(text, "hybrid");
  ASSERT_TRUE(hybrid.ok()) << hybrid.error().message();
  EXPECT_DOUBLE_EQ(hybrid->report.outcomes[0].mean().mean_jct, (300 + 500) / 2.0);
  EXPECT_EQ(hybrid->report.predictor_source.find("2 of 2 jobs predicted from what they name"), 0U)
      << hybrid->report.predictor_source;
}

TEST_F(ScheduledFile, JobsThatNameNoneGetMeasuredErrors) {
  const auto answer = run("id,duration\na,300\nb,200\n", "hybrid");
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_NE(answer->report.predictor_source.find("data/evaluations/h200.json"), std::string::npos);
  // Durations that are themselves predictions are not known better than that.
  const auto circle = run("id,model,batch,iterations\na,resnet18,8,10\nb,resnet18,8,20\n", "hybrid");
  ASSERT_TRUE(circle.ok()) << circle.error().message();
  EXPECT_EQ(circle->report.predictor_source.find("true durations x errors"), 0U) << circle->report.predictor_source;
  EXPECT_EQ(circle->report.made.front(), "durations: iterations x predicted step times");
}

TEST_F(ScheduledFile, ALearnedPredictorIsNotPassedOffForItsErrors) {
  const auto unnamed = run("id,duration\na,300\nb,200\n", "ets");
  ASSERT_FALSE(unnamed.ok());
  EXPECT_NE(unnamed.error().message().find("jobs of this file name no models"), std::string::npos);
  EXPECT_NE(unnamed.error().message().find("error-like:ets"), std::string::npos) << unnamed.error().message();
  const auto named = run("id,model,batch,iterations,duration\na,resnet18,8,10,300\n", "dnnperf");
  ASSERT_FALSE(named.ok());
  EXPECT_NE(named.error().message().find("error-like:dnnperf"), std::string::npos) << named.error().message();
  EXPECT_TRUE(run("id,duration\na,300\nb,200\n", "error-like:dnnperf").ok());
}

TEST_F(ScheduledFile, WordsOfARowAreParsedWhereItIsRead) {
  const auto wrong = run("id,model,iterations,precision\na,resnet18,10,bf17\n", "perfect");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message().find("_named.csv:2: there is no precision 'bf17'"), std::string::npos)
      << wrong.error().message();
  const auto odd = run("id,model,iterations,set\na,resnet18,10,image\n", "perfect");
  ASSERT_FALSE(odd.ok());
  EXPECT_NE(odd.error().message().find("layers=2;width=64"), std::string::npos) << odd.error().message();
  const auto setup =
      run("id,model,iterations,optimizer,set\na,resnet18,10,sgd:momentum=0.5,image=64;batch=4\n", "perfect");
  ASSERT_TRUE(setup.ok()) << setup.error().message();
  // Where the time is stated nobody needs to know what precision that is.
  const auto stated = run("id,model,iterations,duration,precision\na,resnet18,10,300,fp4\n", "hybrid");
  ASSERT_TRUE(stated.ok()) << stated.error().message();
  EXPECT_NE(stated->report.predictor_source.find("there is no precision 'fp4'"), std::string::npos)
      << stated->report.predictor_source;
}

TEST_F(ScheduledFile, JobsThatNeedMoreMemoryThanAGpuHasAreNamed) {
  const auto answer = run("id,duration,memory_gib\na,300,100\nb,200,150\n", "perfect");
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message().find("_named.csv:3: job 'b' needs 150.0 GiB a GPU"), std::string::npos)
      << answer.error().message();
}

TEST(ScheduledRecords, AreReallyPredicted) {
  ScheduleRequest request;
  request.file = FORERUN_DATA_DIR "/h200/runs-1.jsonl.zst";
  request.format = *parse_job_format(kRecordsFormat);
  request.cluster = *cluster::parse_cluster("h200=4");
  request.policies = {*cluster::parse_policy("sjf")};
  request.predictor = *parse_predictor("hybrid");
  request.load.first = 25;
  const auto answer = schedule(request);
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_EQ(answer->report.jobs, 25);
  EXPECT_EQ(answer->report.predictor_source, "25 of 25 jobs predicted from what they name");
  EXPECT_LT(*answer->report.outcomes[0].loss(), 0.2);
  for (const std::string& family : answer->workload.kinds) EXPECT_NE(family, "resnet");  // trained on
  request.cluster = *cluster::parse_cluster("a100=4");
  EXPECT_NE(schedule(request).error().message().find("they have them for h200"), std::string::npos);
}

}  // namespace
}  // namespace forerun
