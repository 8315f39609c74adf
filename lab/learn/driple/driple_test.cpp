// Driple's network: it learns from graphs alone what depends on them, keeps what it learned in a folder, and tunes only
// what transfer learning tunes; every variant runs.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "lab/learn/driple/driple_inspector.h"
#include "lab/learn/driple/driple_net.h"

namespace forerun::learn {
namespace {

// Chains of ops whose length decides all twelve numbers.
ResourceData chains(int64_t count) {
  ResourceData data;
  for (int64_t n = 0; n < count; ++n) {
    Example example;
    const auto length = static_cast<uint32_t>(6 + 4 * n);
    for (uint32_t i = 0; i < length; ++i) {
      OpRow row;
      row.name = data.iterations.intern_name(i % 3 == 0 ? "a" : "b");
      row.set(Amount::bytes_written, 1000);
      example.ops.push_back(data.iterations.intern(row));
      if (i > 0) example.edges.push_back({i - 1, i, 1000});
    }
    ResourceWorkload workload;
    workload.family = "family" + std::to_string(n % 5);
    workload.setting = "P1w2-10G";
    workload.example = static_cast<uint32_t>(n);
    workload.globals = {0.5F};
    workload.columns = {static_cast<float>(n % 3)};
    for (size_t m = 0; m < kResourceMetrics; ++m) {
      workload.measured[m] = static_cast<double>(length * (m + 1));
      workload.simulated[m] = 2 * workload.measured[m];
    }
    data.iterations.add(std::move(example));
    data.workloads.push_back(workload);
  }
  return data;
}

TrainOptions driple_options(int64_t epochs, Settings settings = {}) {
  TrainOptions options;
  options.epochs = epochs;
  options.device = "cpu";
  options.settings = std::move(settings);
  return options;
}

TEST(DripleInspector, LearnsWhatTheGraphTells) {
  const ResourceData data = chains(12);
  const Selection all = select_workloads(data, "P1w2-10G", Split::train);
  ASSERT_EQ(all.size(), 12U);
  DripleInspector driple;
  const auto before = driple.train(data, all, {}, driple_options(1, {{"globals", "no"}}));
  ASSERT_TRUE(before) << before.error().message();
  const double untrained = mean_of(resource_errors(data, all, driple.predict(data, all)));
  ASSERT_TRUE(driple.train(data, all, {}, driple_options(60, {{"globals", "no"}})));
  const double trained = mean_of(resource_errors(data, all, driple.predict(data, all)));
  EXPECT_LT(trained, 0.5 * untrained);
}

// Measured numbers are half of simulated ones: as a ratio that is learned without any graph.
TEST(DripleInspector, LearnsTheRatioToASimulation) {
  const ResourceData data = chains(12);
  const Selection all = select_workloads(data, "P1w2-10G", Split::train);
  DripleInspector driple;
  ASSERT_TRUE(driple.train(data, all, {}, driple_options(1, {{"basis", "simulation"}})));
  EXPECT_LT(mean_of(resource_errors(data, all, driple.predict(data, all))), 0.01);
}

TEST(DripleInspector, TuningKeepsTheScaleWhereItIsTold) {
  ResourceData data = chains(8);
  const Selection all = select_workloads(data, "P1w2-10G", Split::train);
  DripleInspector driple;
  ASSERT_TRUE(driple.train(data, all, {}, driple_options(40)));
  const double before = driple.predict(data, all)[3][0];
  for (ResourceWorkload& workload : data.workloads) {
    for (double& metric : workload.measured) metric *= 50;
  }
  TrainOptions still = driple_options(1, {{"rescale", "no"}, {"tune", "all"}});
  still.learning_rate = 1e-9;
  ASSERT_TRUE(driple.transfer(data, all, {}, still));
  EXPECT_NEAR(driple.predict(data, all)[3][0], before, 0.05 * before);
  still.settings["rescale"] = "yes";
  ASSERT_TRUE(driple.transfer(data, all, {}, still));
  EXPECT_NEAR(driple.predict(data, all)[3][0], 50 * before, 5 * before);
}

TEST(DripleInspector, IsTheSameAfterSavingAndLoading) {
  const ResourceData data = chains(6);
  const Selection all = select_workloads(data, "P1w2-10G", Split::train);
  DripleInspector driple;
  ASSERT_TRUE(driple.train(data, all, {}, driple_options(3, {{"nets", "2"}})));
  ASSERT_TRUE(driple.transfer(data, all, {}, driple_options(3)));
  const auto folder = std::filesystem::temp_directory_path() / "forerun_driple_test";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(driple.save(folder.string()).ok());
  DripleInspector loaded;
  const Status status = loaded.load(folder.string());
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(status.ok()) << status.error().message();
  const auto expected = driple.predict(data, all);
  const auto found = loaded.predict(data, all);
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t m = 0; m < kResourceMetrics; ++m) EXPECT_NEAR(found[i][m], expected[i][m], 1e-3 * expected[i][m]);
  }
}

TEST(DripleInspector, RunsInEveryVariantAndRefusesOthers) {
  const ResourceData data = chains(4);
  const Selection all = select_workloads(data, "P1w2-10G", Split::train);
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{{"layer", "gin"},
                                                                                   {"layer", "gat"},
                                                                                   {"layer", "mpnn"},
                                                                                   {"readout", "sum"},
                                                                                   {"readout", "mean"},
                                                                                   {"readout", "max"},
                                                                                   {"grouping", "none"},
                                                                                   {"grouping", "uniform"},
                                                                                   {"target", "max"},
                                                                                   {"globals", "workload"},
                                                                                   {"basis", "simulation"},
                                                                                   {"loss", "percent"},
                                                                                   {"nets", "2"},
                                                                                   {"dropout", "30"},
                                                                                   {"depth", "3"}}) {
    DripleInspector driple;
    const auto log = driple.train(data, all, {}, driple_options(2, {{key, value}}));
    ASSERT_TRUE(log) << key << "=" << value << ": " << log.error().message();
    for (const ResourceMetrics& metrics : driple.predict(data, all)) {
      for (const double metric : metrics) EXPECT_TRUE(std::isfinite(metric)) << key << "=" << value;
    }
  }
  DripleInspector driple;
  EXPECT_FALSE(driple.train(data, all, {}, driple_options(1, {{"layer", "cnn"}})));
  EXPECT_FALSE(driple.train(data, all, {}, driple_options(1, {{"depth", "-1"}})));
  EXPECT_FALSE(driple.train(data, all, {}, driple_options(1, {{"layers", "gcn"}})));
  EXPECT_FALSE(driple.train(data, all, {}, driple_options(1, {{"basis", "simulation"}, {"target", "max"}})));
}

TEST(DripleNet, TunesThePartsThatAreNamedAlone) {
  for (const std::string tune : {"late+mlp", "first", "gru+readout", "mlp"}) {
    DripleNet net({.depth = 6, .globals = 0});
    net.tune_parts(driple_parts(tune), 0.5);
    EXPECT_EQ(net.is_apart(), tune == "late+mlp");
    for (const auto& parameter : net.named_parameters()) {
      std::string part = parameter.key().substr(0, parameter.key().find('.'));
      if (part == "set2set") part = "readout";
      if (part.rfind("mlp", 0) == 0) part = "mlp";
      const bool tuned = tune.find(part) != std::string::npos;
      EXPECT_EQ(parameter.value().requires_grad(), tuned) << tune << ": " << parameter.key();
    }
  }
}

}  // namespace
}  // namespace forerun::learn
