// DNNPerf and the baselines: that networks treat the graphs of a batch apart, that all their weights learn, and that
// what they learn holds for families they have not seen.
#include "lab/learn/graph_predictor.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "lab/dataset/test_data.h"
#include "lab/learn/baselines/graph_baselines.h"
#include "lab/learn/dnnperf/dnnperf.h"
#include "lab/learn/predictors.h"

namespace forerun::learn {
namespace {

struct Net {
  std::string name;
  std::shared_ptr<GraphNet> net;
  GraphTensors graphs;
};

// Every network, small, untrained, with some graphs.
std::vector<Net> all_nets(const DataSet& data, const Selection& examples) {
  std::vector<Net> nets;
  const auto add = [&](const GraphSystem& system, const std::string& encoder) {
    GraphOptions options = system.defaults;
    options.hidden = 16;
    options.encoder = encoder;
    const GraphFeatures features({.whole_iteration = true}, data, examples);
    torch::manual_seed(5);
    nets.push_back({system.name + encoder,
                    system.make(options, {.names = features.vocabulary().size(),
                                          .nodes = static_cast<int64_t>(features.node_width())}),
                    GraphTensors(features.tables(data, examples), torch::kCPU)});
  };
  for (const char* encoder : {"anee", "gat", "concat"}) add(dnnperf_system(), encoder);
  add(mlp_system(), "");
  add(birnn_system(), "");
  add(arnn_system(), "");
  add(brp_nas_system(), "");
  add(grouping_gcn_system(), "");
  return nets;
}

TEST(GraphNets, AnswerForABatchAsForEachGraphAlone) {
  const DataSet data = made_up_data(3, 4);
  torch::NoGradGuard guard;
  for (Net& each : all_nets(data, select(data, Split::train))) {
    each.net->eval();
    const std::vector<int64_t> batch = {5, 0, 3};
    const torch::Tensor together = each.net->forward(each.graphs.batch(batch));
    ASSERT_EQ(together.sizes(), (std::vector<int64_t>{3})) << each.name;
    for (size_t i = 0; i < batch.size(); ++i) {
      const float alone = each.net->forward(each.graphs.batch(std::span(batch).subspan(i, 1))).item<float>();
      EXPECT_NEAR(together[static_cast<int64_t>(i)].item<float>(), alone, 1e-4) << each.name;
    }
  }
}

TEST(GraphNets, AllWeightsHaveGradients) {
  const DataSet data = made_up_data(3, 4);
  for (Net& each : all_nets(data, select(data, Split::train))) {
    const std::vector<int64_t> batch = {0, 1, 2, 3};
    each.net->forward(each.graphs.batch(batch)).pow(2).sum().backward();
    for (const auto& parameter : each.net->named_parameters()) {
      const torch::Tensor& gradient = parameter.value().grad();
      ASSERT_TRUE(gradient.defined()) << each.name << " " << parameter.key();
      EXPECT_TRUE(torch::isfinite(gradient).all().item<bool>()) << each.name << " " << parameter.key();
      EXPECT_GT(gradient.abs().sum().item<float>(), 0) << each.name << " " << parameter.key();
    }
  }
}

TEST(GraphNets, SeeTheEdgesOrDoNot) {
  DataSet data = made_up_data(3, 4);
  const Selection train = select(data, Split::train);
  std::vector<float> before;
  torch::NoGradGuard guard;
  const std::vector<int64_t> batch = {0};
  for (Net& each : all_nets(data, train)) before.push_back(each.net->forward(each.graphs.batch(batch)).item<float>());
  auto& edges = data.examples()[train[0]].edges;
  for (size_t i = 1; i < edges.size(); ++i) edges[i].source = 0;  // a star in place of a chain
  size_t at = 0;
  for (Net& each : all_nets(data, train)) {
    const float after = each.net->forward(each.graphs.batch(batch)).item<float>();
    const bool blind = each.name == "mlp" || each.name == "birnn";
    EXPECT_EQ(std::abs(after - before[at]) < 1e-6, blind) << each.name;
    ++at;
  }
}

TrainOptions quick(int64_t epochs) {
  return {.epochs = epochs,
          .batch = 8,
          .learning_rate = 5e-3,
          .device = "cpu",
          .settings = {{"hidden", "16"}, {"graph", "iteration"}}};
}

double test_error(Predictor& predictor, const DataSet& data, Target quantity) {
  const Selection test = select(data, Split::test);
  return evaluate(data, test, predictor.predict(data, test), quantity).all.mre;
}

TEST(GraphPredictors, LearnWhatHoldsForUnseenFamilies) {
  const DataSet data = made_up_data(9, 16);
  for (const char* name : {"dnnperf-time", "dnnperf-memory", "mlp-time", "birnn-time", "arnn-memory", "grouping-gcn"}) {
    const bool memory = std::string(name).ends_with("memory");
    const Target quantity = memory ? Target::peak_bytes : Target::iteration_ms;
    auto predictor = make_predictor(name);
    ASSERT_TRUE(predictor.ok());
    const auto log = (*predictor)->train(data, quick(40));
    ASSERT_TRUE(log.ok()) << log.error().message();
    const double naive = naive_error(data, quantity);
    EXPECT_LT(test_error(**predictor, data, quantity), 0.6 * naive) << name << ", naive " << naive;
    EXPECT_LT(log->best_validation_error, 0.6 * naive) << name;
  }
}

TEST(GraphPredictors, EveryAblationTrains) {
  const DataSet data = made_up_data(6, 4);
  const Settings choices[] = {{{"encoder", "gat"}},     {{"encoder", "concat"}},
                              {{"scaler", "standard"}}, {{"tensor_cost", "no"}},
                              {{"readout", "mean"}},    {{"graph", "forward"}, {"layers", "1"}}};
  for (const Settings& settings : choices) {
    GraphPredictor predictor(dnnperf_system(), Target::iteration_ms);
    TrainOptions options = quick(6);
    for (const auto& [key, value] : settings) options.settings[key] = value;
    const auto log = predictor.train(data, options);
    ASSERT_TRUE(log.ok()) << log.error().message();
    EXPECT_LT(log->epochs.back().training_loss, log->epochs.front().training_loss) << settings.begin()->second;
    for (const auto& [key, value] : settings) EXPECT_EQ(predictor.settings().at(key), value);
  }
}

TEST(GraphPredictors, RefuseSettingsThatAreNone) {
  const DataSet data = made_up_data(3, 2);
  for (const Settings& settings : {Settings{{"encoder", "gin"}}, Settings{{"layers", "0"}}, Settings{{"heads", "2"}},
                                   Settings{{"scaler", "log"}}, Settings{{"hidden", "many"}}}) {
    GraphPredictor dnnperf(dnnperf_system(), Target::iteration_ms);
    EXPECT_FALSE(dnnperf.train(data, {.settings = settings}).ok()) << settings.begin()->first;
  }
  GraphPredictor mlp(mlp_system(), Target::iteration_ms);
  EXPECT_FALSE(mlp.train(data, {.settings = {{"encoder", "gat"}}}).ok());
}

TEST(GraphPredictors, ForgiveExamplesWithoutOps) {
  DataSet data = made_up_data(6, 2);
  Example empty;
  empty.group = "empty";
  empty.split = Split::test;
  empty.targets.iteration_ms = empty.targets.peak_bytes = 1;
  data.add(empty);
  const Selection last = {static_cast<uint32_t>(data.examples().size() - 1)};
  for (const PredictorEntry& entry : predictors()) {
    const auto predictor = entry.make();
    TrainOptions options{.epochs = 1, .device = "cpu"};
    if (predictor->settings().contains("hidden")) options.settings["hidden"] = "8";
    const auto log = predictor->train(data, options);
    ASSERT_TRUE(log.ok()) << entry.name << " " << log.error().message();
    EXPECT_EQ(predictor->predict(data, last).size(), 1) << entry.name;
    EXPECT_TRUE(predictor->predict(data, {}).empty()) << entry.name;
  }
}

// Whatever is in the list is saved and read back to the same predictions, in few bytes.
TEST(Weights, OfEveryPredictorAreReadBackToTheSameBits) {
  const DataSet data = made_up_data(6, 3);
  const Selection test = select(data, Split::test);
  for (const PredictorEntry& entry : predictors()) {
    const std::string folder = testing::TempDir() + "/weights_" + std::string(entry.name);
    std::filesystem::remove_all(folder);
    const auto predictor = entry.make();
    TrainOptions options{.epochs = 1, .device = "cpu"};
    if (predictor->settings().contains("hidden")) options.settings["hidden"] = "32";
    const auto log = predictor->train(data, options);
    ASSERT_TRUE(log.ok()) << entry.name << " " << log.error().message();
    ASSERT_TRUE(save_weights(folder, entry.name, *predictor, data, options, *log).ok());
    auto loaded = load_weights(folder);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    EXPECT_EQ(loaded->predictor->settings(), predictor->settings());
    const auto before = predictor->predict(data, test);
    const auto after = loaded->predictor->predict(data, test);
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].iteration_ms, after[i].iteration_ms) << entry.name;
      EXPECT_EQ(before[i].peak_bytes, after[i].peak_bytes) << entry.name;
      EXPECT_EQ(before[i].op_us, after[i].op_us) << entry.name;
    }
    std::filesystem::remove_all(folder);
  }
}

}  // namespace
}  // namespace forerun::learn
