// Data for predictors of resources: windows of one workload become one, simulated workloads are of training families
// alone, and what is printed of studies is what they say.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "lab/eval/driple_suite.h"
#include "lab/training_data/driple_builder.h"
#include "lab/training_data/driple_simulated.h"
#include "predict/cost_models.h"

namespace forerun {
namespace {

constexpr const char* kDripleRecord =
    R"({"schema":"resources/1","id":"P1w2-10G/tiny/sync-b8","status":"ok","family":"FAMILY","args":{"mult":1.0,"fc":512},)"
    R"("input":["image",8,3,96,1000],"run":{"precision":"fp32","optimizer":{"name":"SGD","impl":"foreach","lr":0.001,)"
    R"("momentum":0.0,"weight_decay":0.0},"channels_last":false,"cudnn_benchmark":false,"accumulate":1},)"
    R"("model":"tiny","setting":"P1w2-10G","mode":"sync","servers":1,"workers":2,"link_bits_per_second":10000000000.0,)"
    R"("tcp":"reno","iterations":2,"window_ms":100,"iteration_ms":[50,50],"metrics":{)"
    R"("gpu":{"idle_ms":IDLE,"burst_ms":20,"amount":40},"memory":{"idle_ms":IDLE,"burst_ms":20,"amount":4},)"
    R"("send":{"idle_ms":30,"burst_ms":20,"amount":600},"receive":{"idle_ms":30,"burst_ms":20,"amount":600}}})";

ResourceRecord driple_record(const std::string& family, const std::string& idle) {
  std::string line = kDripleRecord;
  const auto replace = [&line](const std::string& what, const std::string& with) {
    for (size_t at = 0; (at = line.find(what, at)) != std::string::npos; at += with.size()) {
      line.replace(at, what.size(), with);
    }
  };
  replace("FAMILY", family);
  replace("IDLE", idle);
  ResourceReader reader;
  auto record = reader.decode(line);
  EXPECT_TRUE(record) << record.error().message();
  return std::move(*record);
}

class DripleData : public testing::Test {
 protected:
  void SetUp() override {
    auto cost_models = load_cost_models();
    ASSERT_TRUE(cost_models) << cost_models.error().message();
    cost_models_ = std::make_unique<CostModels>(std::move(*cost_models));
    auto device = cost_models_->devices.find("h200");
    ASSERT_TRUE(device);
    device_ = std::make_unique<Device>(*device);
  }
  DripleWorkloadBuilder builder() {
    return {*cost_models_, *device_, rates_, DataSplit::of_families({{"alexnet", "train"}, {"squeezenet", "test"}})};
  }
  std::unique_ptr<CostModels> cost_models_;
  std::unique_ptr<Device> device_;
  scale::HostRates rates_;
};

TEST_F(DripleData, WindowsOfOneWorkloadAreAveraged) {
  DripleWorkloadBuilder build = builder();
  for (const char* idle : {"10", "20", "60"}) ASSERT_TRUE(build.add_measured(driple_record("alexnet", idle)).ok());
  ResourceRecord other = driple_record("alexnet", "99");
  other.tcp = "default";
  ASSERT_TRUE(build.add_measured(other).ok());
  const learn::ResourceData data = std::move(build).finish();
  ASSERT_EQ(data.workloads.size(), 2U);
  EXPECT_EQ(data.iterations.examples().size(), 1U);  // both have the same iteration
  EXPECT_EQ(data.workloads[0].windows.size(), 3U);
  EXPECT_DOUBLE_EQ(data.workloads[0].measured[0], 30);
  EXPECT_DOUBLE_EQ(data.workloads[1].measured[0], 99);
  EXPECT_EQ(data.workloads[1].setting, "P1w2-10G-default");
  EXPECT_EQ(data.workloads[0].split, learn::Split::train);

  // |mean of the others - window| / window: 40 for 10, 35 for 20, 15 for 60.
  const DripleRow again = repeatability(data, {0, 1});
  EXPECT_NEAR(again.errors[0], (30.0 / 10 + 15.0 / 20 + 45.0 / 60) / 3, 1e-9);
  EXPECT_DOUBLE_EQ(again.errors[1], 0);
  EXPECT_NE(again.note.find("1 of 2"), std::string::npos) << again.note;
}

TEST_F(DripleData, WhatNoRecordTellsIsNotJudged) {
  DripleWorkloadBuilder build = builder();
  ASSERT_TRUE(build.add_measured(driple_record("alexnet", "10")).ok());
  ResourceRecord kernels = driple_record("alexnet", "10");
  kernels.id = "another";
  kernels.measured.gpu_times = GpuTimes::kernels;
  ASSERT_TRUE(build.add_measured(kernels).ok());
  const std::vector<learn::ResourceWorkload>& workloads = build.data().workloads;
  ASSERT_EQ(workloads.size(), 2U);
  for (size_t m = 0; m < learn::kResourceMetrics; ++m) {
    const bool copied = m == 3 || m == 4;  // idle and burst of memory, which by clocks are the GPU's
    EXPECT_EQ(workloads[0].judged[m], !copied);
    EXPECT_TRUE(workloads[1].judged[m]);
    EXPECT_EQ(workloads[0].measured[m] == workloads[0].simulated[m], copied) << m;
  }
  EXPECT_DOUBLE_EQ(workloads[1].measured[3], 10);
  const auto errors = learn::resource_errors(build.data(), {0}, {workloads[0].simulated});
  EXPECT_TRUE(std::isnan(errors[3]));
  EXPECT_FALSE(std::isnan(errors[5]));
  EXPECT_GT(learn::mean_of(errors), 0);
}

TEST_F(DripleData, TheGpuIsSeenKernelByKernelWhereAsked) {
  ResourceRecord record = driple_record("alexnet", "10");
  record.measured.gpu_times = GpuTimes::kernels;
  record.measured.by_clocks = {BurstFigures{70, 80, 90}, BurstFigures{70, 80, 9}};
  DripleWorkloadBuilder clocks = builder();
  DripleWorkloadBuilder kernels(*cost_models_, *device_, rates_, DataSplit::of_families({{"alexnet", "train"}}),
                                GpuTimes::kernels);
  ASSERT_TRUE(clocks.add_measured(record).ok());
  ASSERT_TRUE(kernels.add_measured(record).ok());
  const learn::ResourceMetrics& by_clocks = clocks.data().workloads[0].measured;
  const learn::ResourceMetrics& by_kernels = kernels.data().workloads[0].measured;
  EXPECT_DOUBLE_EQ(by_clocks[0], 70);
  EXPECT_DOUBLE_EQ(by_clocks[5], 9);
  EXPECT_DOUBLE_EQ(by_kernels[0], 10);
  EXPECT_DOUBLE_EQ(by_kernels[5], 4);
  for (size_t m : {3, 4, 6, 11}) EXPECT_DOUBLE_EQ(by_clocks[m], by_kernels[m]);
}

// Before a run nobody knows how links will be shared: its simulation is the mean over how they were.
TEST_F(DripleData, LinksThatDifferAreAveraged) {
  rates_.sharing["P1w2-10G sync"] = {.first_weight = 5};
  std::vector<ResourceRecord> records;
  for (const LinksSeen links : {LinksSeen::first, LinksSeen::first, LinksSeen::even}) {
    records.push_back(driple_record("alexnet", "10"));
    records.back().links = links;
  }
  DripleWorkloadBuilder build = builder();
  build.learn_link_states(records);
  for (const ResourceRecord& record : records) {
    ASSERT_TRUE(build.add_measured(record).ok());
    ASSERT_TRUE(build.add_divided(record).ok());
  }
  const std::vector<learn::ResourceWorkload>& workloads = build.data().workloads;
  ASSERT_EQ(workloads.size(), 3U);
  EXPECT_EQ(workloads[0].setting, "P1w2-10G");
  EXPECT_EQ(workloads[0].windows.size(), 3U);
  EXPECT_EQ(workloads[1].setting, "P1w2-10G-first");
  EXPECT_EQ(workloads[1].windows.size(), 2U);
  EXPECT_EQ(workloads[2].setting, "P1w2-10G-even");
  EXPECT_NE(workloads[1].simulated[10], workloads[2].simulated[10]);
  for (size_t m = 0; m < learn::kResourceMetrics; ++m) {
    EXPECT_NEAR(workloads[0].simulated[m], (2 * workloads[1].simulated[m] + workloads[2].simulated[m]) / 3, 1e-9);
  }
  EXPECT_EQ(measured_settings(build.data()), std::vector<std::string>{"P1w2-10G"});
}

TEST_F(DripleData, SimulatedWorkloadsAreOfTrainingFamiliesAndTheSameForASeed) {
  const std::vector<ResourceRecord> patterns = {driple_record("alexnet", "10"), driple_record("squeezenet", "10")};
  DripleWorkloadBuilder build = builder();
  EXPECT_EQ(add_simulated_workloads(patterns, 5, 7, build), 5);
  DripleWorkloadBuilder again = builder();
  EXPECT_EQ(add_simulated_workloads(patterns, 5, 7, again), 5);
  const learn::ResourceData& data = build.data();
  ASSERT_EQ(data.workloads.size(), 5U);
  std::set<double> differing;
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(data.workloads[i].family, "alexnet");
    EXPECT_EQ(data.workloads[i].setting, "sim:P1w2-10G");
    EXPECT_EQ(data.workloads[i].measured, data.workloads[i].simulated);
    EXPECT_EQ(data.workloads[i].measured, again.data().workloads[i].measured);
    EXPECT_GT(data.workloads[i].measured[1], 0);
    differing.insert(data.workloads[i].measured[1]);
  }
  EXPECT_GT(differing.size(), 1U);
  DripleWorkloadBuilder none = builder();
  EXPECT_EQ(add_simulated_workloads({patterns[1]}, 5, 7, none), 0);
}

TEST(DripleStudies, TransferPairsFullAndTuned) {
  learn::ResourceStudyRow full{.study = "transfer", .name = "full", .setting = "P1w2-1G", .training = 30, .test = 9};
  full.errors.fill(0.2);
  full.seconds = 20;
  learn::ResourceStudyRow tuned = full;
  tuned.name = "tuned";
  tuned.training = 10;
  tuned.errors.fill(0.21);
  tuned.seconds = 2;
  learn::ResourceStudyRow alone = full;
  alone.setting = "AR4-10G";
  learn::ResourceStudyRow other = tuned;
  other.study = "ablations";
  const std::vector<DripleTransferRow> rows = transfers_of({full, tuned, alone, other});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].setting, "P1w2-1G");
  EXPECT_EQ(rows[0].full_workloads, 30);
  EXPECT_EQ(rows[0].tuned_workloads, 10);
  EXPECT_NEAR(rows[0].tuned_error / rows[0].full_error, 1.05, 1e-9);
  EXPECT_DOUBLE_EQ(rows[0].full_seconds / rows[0].tuned_seconds, 10);
}

TEST(DripleStudies, ListsNameWhatTheyTry) {
  learn::ResourceData data;
  for (const char* setting : {"P1w2-10G", "P1w2-1G", "sim:P1w2-10G", "P1w2-10G-even"}) {
    learn::ResourceWorkload workload;
    workload.setting = setting;
    if (workload.setting == "P1w2-10G-even") workload.labels = learn::Labels::divided;
    data.workloads.push_back(workload);
  }
  DripleTraining request;
  request.study = "ablations";
  const auto ablations = driple_study(request, data);
  ASSERT_TRUE(ablations);
  std::set<std::string> layers;
  for (const learn::ResourceJob& job : *ablations) {
    const auto layer = job.recipe.options.settings.find("layer");
    if (layer != job.recipe.options.settings.end()) layers.insert(layer->second);
  }
  EXPECT_EQ(layers, (std::set<std::string>{"gat", "gin", "mpnn"}));

  request.study = "transfer";
  EXPECT_FALSE(driple_study(request, data));  // from which weights?
  request.out = "somewhere";
  const auto transfers = driple_study(request, data);
  ASSERT_TRUE(transfers);
  ASSERT_EQ(transfers->size(), 2U);  // not to itself, nor to simulated ones
  EXPECT_EQ((*transfers)[1].setting, "P1w2-1G");
  EXPECT_EQ((*transfers)[1].recipe.from, "somewhere");
  for (const learn::ResourceJob& job : *transfers) {  // both end when nothing is gained, and by no count of their own
    EXPECT_EQ(job.recipe.options.patience, (*transfers)[0].recipe.options.patience);
    EXPECT_EQ(job.recipe.tune_epochs, job.recipe.options.epochs);
    EXPECT_GT(job.recipe.tune_validation, 0);
  }

  request.study = "ablation";
  const auto wrong = driple_study(request, data);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message().find("ablations"), std::string::npos);
}

TEST(DripleReport, PrintsStudiesAndUnseenModels) {
  DripleAccuracy accuracy{.setting = "P1w2-10G", .source = "made up", .training = 3, .test = 2};
  DripleRow row{.predictor = "driple", .note = "n"};
  row.errors.fill(0.125);
  accuracy.rows = {row};
  accuracy.model_rows = {row};
  accuracy.studies = {{.study = "ablations", .name = "layer GIN", .training = 88, .row = row}};
  DripleRow unasked{.predictor = "driple", .note = "was not trained"};
  unasked.errors.fill(std::nan(""));
  accuracy.others = {{.setting = "P2w2-10G", .training = 9, .test = 5, .rows = {row, unasked}}};
  EXPECT_EQ(row.judged(), 12);
  EXPECT_EQ(unasked.judged(), 0);
  const std::string text = to_text(accuracy);
  EXPECT_NE(text.find("P2w2-10G"), std::string::npos);
  EXPECT_NE(text.find("was not trained"), std::string::npos);
  EXPECT_NE(to_json(accuracy).find(R"("other_settings":{"P2w2-10G")"), std::string::npos);
  EXPECT_NE(text.find("layer GIN"), std::string::npos);
  EXPECT_NE(text.find("Unseen models"), std::string::npos);
  EXPECT_NE(text.find("12.5 %"), std::string::npos);
  EXPECT_NE(to_json(accuracy).find(R"("name":"layer GIN")"), std::string::npos);
}

}  // namespace
}  // namespace forerun
