// Meta-learning on tasks that are multiples of one curve: no single network fits them all, and one step from a good start
// tells which it is.
#include "lab/learn/meta_learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "lab/dataset/test_data.h"
#include "lab/learn/ets/ets_predictor.h"
#include "lab/learn/few_study.h"
#include "lab/learn/predictors.h"
#include "lab/learn/trainer.h"
#include "lab/learn/training_session.h"

namespace forerun::learn {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPoints = 200;  // of a task
constexpr int64_t kGroupSize = 10;
constexpr double kStepRate = 0.02;

// Tasks y = a x^2, one for each a, and a network to learn them.
struct Multiples {
  explicit Multiples(const std::vector<double>& factors, uint64_t seed = 3) {
    torch::manual_seed(seed);
    net = torch::nn::Sequential(torch::nn::Linear(1, 32), torch::nn::Tanh(), torch::nn::Linear(32, 32),
                                torch::nn::Tanh(), torch::nn::Linear(32, 1));
    std::vector<torch::Tensor> all_x;
    std::vector<torch::Tensor> all_y;
    for (const double factor : factors) {
      MetaTask task{.name = "a", .groups = {}};
      for (int64_t i = 0; i < kPoints; i += kGroupSize) {
        task.groups.push_back({static_cast<int64_t>(all_x.size()) * kPoints + i, kGroupSize});
      }
      tasks.push_back(task);
      all_x.push_back(2 * torch::rand({kPoints, 1}) - 1);
      all_y.push_back(factor * all_x.back() * all_x.back());
    }
    x = torch::cat(all_x);
    y = torch::cat(all_y);
    loss = [this](const torch::Tensor& batch) {
      return torch::l1_loss(net->forward(x.index_select(0, batch)), y.index_select(0, batch));
    };
  }

  void train(bool meta, int64_t epochs, uint64_t seed = 1) {
    TrainingTask task{.module = net.get(), .samples = x.size(0), .loss = loss, .epochs = epochs, .learning_rate = 1e-3};
    task.batch = 32;
    auto learner = MetaLearner::create(*net, loss, tasks,
                                       {.tasks = 4, .support = 5, .inner_steps = 1, .inner_rate = kStepRate}, 32);
    ASSERT_TRUE(learner.ok()) << learner.error().message();
    if (meta) {
      task.batch = 4;
      task.samples = learner->episodes();
      task.gradients = [&](const torch::Tensor& episodes) { return learner->gradients(episodes); };
    }
    ASSERT_TRUE(run_training(task, {.seed = seed}).ok());
  }

  // The loss on a further task after one step on half of it, on the other half.
  double after_one_step(double factor) {
    torch::manual_seed(11);
    const torch::Tensor further = 2 * torch::rand({kPoints, 1}) - 1;
    const torch::Tensor values = factor * further * further;
    const auto on_further = [&](const torch::Tensor& batch) {
      return torch::l1_loss(net->forward(further.index_select(0, batch)), values.index_select(0, batch));
    };
    std::vector<torch::Tensor> begun;
    for (const torch::Tensor& parameter : net->parameters()) begun.push_back(parameter.detach().clone());
    adapt(*net, on_further, torch::arange(kPoints / 2), 100, 1, kStepRate);
    torch::NoGradGuard guard;
    const double loss_there = on_further(torch::arange(kPoints / 2, kPoints)).item<double>();
    size_t at = 0;
    for (torch::Tensor& parameter : net->parameters()) parameter.copy_(begun[at++]);
    return loss_there;
  }

  torch::nn::Sequential net = nullptr;
  torch::Tensor x, y;
  std::vector<MetaTask> tasks;
  MetaLearner::Loss loss;
};

bool equal_weights(const torch::nn::Module& a, const torch::nn::Module& b) {
  const auto first = a.parameters();
  const auto second = b.parameters();
  for (size_t i = 0; i < first.size(); ++i) {
    if (!torch::equal(first[i], second[i])) return false;
  }
  return first.size() == second.size();
}

TEST(MetaLearner, AdaptsFurtherInOneStepThanWhatWasTrainedOnAllTasks) {
  const std::vector<double> factors = {-2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2};
  Multiples meta(factors);
  Multiples joint(factors);
  meta.train(true, 60);
  joint.train(false, 40);
  double from_meta = 0;
  double from_joint = 0;
  for (const double further : {-1.75, -0.75, 0.75, 1.25}) {
    from_meta += meta.after_one_step(further);
    from_joint += joint.after_one_step(further);
  }
  EXPECT_LT(from_meta, 0.85 * from_joint);
}

TEST(MetaLearner, IsRepeatableAndDependsOnTheSeed) {
  Multiples a({-1, 1, 2});
  Multiples b({-1, 1, 2});
  Multiples c({-1, 1, 2});
  a.train(true, 2, 5);
  b.train(true, 2, 5);
  c.train(true, 2, 6);
  EXPECT_TRUE(equal_weights(*a.net, *b.net));
  EXPECT_FALSE(equal_weights(*a.net, *c.net));
}

TEST(MetaLearner, LeavesTheWeightsAsTheyWere) {
  Multiples tasks({-1, 1});
  const Multiples same({-1, 1});
  auto learner = MetaLearner::create(*tasks.net, tasks.loss, tasks.tasks, {}, 16);
  ASSERT_TRUE(learner.ok());
  learner->gradients(torch::arange(4));
  EXPECT_TRUE(equal_weights(*tasks.net, *same.net));
  double size = 0;  // of all: signs of errors, which are what a bias gets, may cancel out
  for (const torch::Tensor& parameter : tasks.net->parameters()) {
    ASSERT_TRUE(parameter.grad().defined());
    size += parameter.grad().abs().sum().item<double>();
  }
  EXPECT_GT(size, 0);
}

TEST(MetaLearner, RefusesTasksThatCannotBeDivided) {
  Multiples tasks({-1, 1});
  EXPECT_FALSE(MetaLearner::create(*tasks.net, tasks.loss, {tasks.tasks[0]}, {}, 16).ok());
  tasks.tasks[1].groups.resize(1);
  const auto refused = MetaLearner::create(*tasks.net, tasks.loss, tasks.tasks, {}, 16);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("fewer than two traces"), std::string::npos) << refused.error().message();
}

// Made-up iterations of a GPU that takes `factor` times as long.
DataSet data_of_gpu(const std::string& gpu, double factor, uint64_t seed) {
  DataSet data = made_up_data(6, 6, seed);
  for (Example& example : data.examples()) {
    example.device = gpu;
    Targets& targets = example.targets;
    for (auto* times : {&targets.op_us, &targets.gap_us}) {
      for (float& us : *times) us *= static_cast<float>(factor);
    }
    targets.iteration_ms *= factor;
    targets.gpu_busy_ms *= factor;
  }
  data.source = gpu;
  return data;
}

DataSet several_gpus() {
  DataSet data = data_of_gpu("T4", 4, 1);
  data.append(data_of_gpu("2080Ti", 2, 2));
  data.append(data_of_gpu("Tesla P4", 5, 3));
  return data;
}

TrainOptions quick_meta() {
  return {.epochs = 5,
          .batch = 32,
          .learning_rate = 3e-3,
          .device = "cpu",
          .settings = {{"layers", "1"}, {"hidden", "8"}, {"target", "log"}},
          .meta = MetaOptions{.tasks = 3, .support = 4, .inner_steps = 2, .inner_rate = 5e-3}};
}

TEST(MetaLearnedEts, IsJudgedOnAGpuThatItHasNotSeen) {
  const std::string folder = testing::TempDir() + "/meta_start";
  fs::remove_all(folder);
  const auto outcome = train_and_save({.predictor = "ets", .out = folder, .options = quick_meta()}, several_gpus());
  ASSERT_TRUE(outcome.ok()) << outcome.error().message();
  FewRequest request{
      .starts = {folder, kScratchStart}, .few = {3, 6}, .draws = 2, .options = quick_meta(), .progress = {}};
  request.options.meta.reset();
  request.options.epochs = 2;
  const auto rows = run_few_study(request, data_of_gpu("NVIDIA H200", 1, 4));
  ASSERT_TRUE(rows.ok()) << rows.error().message();
  ASSERT_EQ(rows->size(), 4U);
  EXPECT_EQ(rows->at(0).start, kMetaStart);
  EXPECT_EQ(rows->at(0).learned_from, (std::vector<std::string>{"2080Ti", "T4", "Tesla P4"}));
  EXPECT_EQ(rows->at(2).start, kScratchStart);
  ASSERT_EQ(rows->at(0).errors.size(), 3U);  // as it starts, after 1 and 2 epochs
  EXPECT_EQ(rows->at(0).errors[0].mre, rows->at(1).errors[0].mre);
  EXPECT_NE(rows->at(0).errors[2].mre, rows->at(1).errors[2].mre);
  EXPECT_EQ(rows->at(2).errors.size(), 2U);
  const auto again = run_few_study(request, data_of_gpu("NVIDIA H200", 1, 4));
  ASSERT_TRUE(again.ok());
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(again->at(i).errors.back().mre, rows->at(i).errors.back().mre);
  // By whatever name.
  const auto seen = run_few_study(request, data_of_gpu("NVIDIA T4", 1, 4));
  ASSERT_FALSE(seen.ok());
  EXPECT_NE(seen.error().message().find("has seen the GPU"), std::string::npos) << seen.error().message();
}

TEST(MetaLearnedEts, IsRefusedWhereFeaturesDiffer) {
  DataSet data = several_gpus();
  DataSet traced;
  const DataSet recorded = data_of_gpu("P100", 1, 5);
  for (Example example : recorded.examples()) {
    for (uint32_t& op : example.ops) {
      OpRow row;
      row.name = traced.intern_name("203");
      row.set(Amount::flops, 1e6 * (1 + op % 7));
      op = traced.intern(row);
    }
    traced.add(std::move(example));
  }
  data.append(traced);
  EtsPredictor own;
  const auto refused = own.train(data, quick_meta());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("features=shared"), std::string::npos) << refused.error().message();
  TrainOptions options = quick_meta();
  options.settings["features"] = "shared";
  EtsPredictor shared;
  EXPECT_TRUE(shared.train(data, options).ok());
}

TEST(MetaLearnedEts, OtherPredictorsAreRefused) {
  const auto outcome = train_and_save({.predictor = "mlp-time", .out = "", .options = quick_meta()}, several_gpus());
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().message().find("train ets"), std::string::npos) << outcome.error().message();
}

TEST(FewTraces, AreOfFamiliesInTurnAndNested) {
  const DataSet data = made_up_data(9, 5);
  const Selection few = few_traces(data, 6, 1);
  const Selection more = few_traces(data, 12, 1);
  ASSERT_EQ(few.size(), 6U);
  std::set<std::string> families;
  for (const uint32_t i : few) {
    families.insert(data.examples()[i].group);
    EXPECT_EQ(data.examples()[i].split, Split::train);
    EXPECT_TRUE(std::binary_search(more.begin(), more.end(), i));
  }
  EXPECT_EQ(families.size(), 6U);
  EXPECT_NE(few, few_traces(data, 6, 2));
}

}  // namespace
}  // namespace forerun::learn
