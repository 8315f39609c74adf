#include "lab/learn/trainer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lab/dataset/metrics.h"
#include "lab/dataset/test_data.h"
#include "lab/learn/ets/ets_predictor.h"

namespace forerun::learn {
namespace {

namespace fs = std::filesystem;

// A line to be learned, with a hidden layer and dropout so that order and random numbers matter.
struct Line {
  explicit Line(uint64_t seed = 1) {
    torch::manual_seed(seed);
    net = torch::nn::Sequential(torch::nn::Linear(1, 8), torch::nn::ReLU(), torch::nn::Dropout(0.1),
                                torch::nn::Linear(8, 1));
    x = torch::linspace(0, 1, 64).unsqueeze(1);
    y = 3 * x + 1;
    task = {.module = net.get(),
            .samples = 64,
            .loss =
                [this](const torch::Tensor& batch) {
                  return torch::l1_loss(net->forward(x.index_select(0, batch)), y.index_select(0, batch));
                },
            .validation_error = [this] { return ((net->forward(x) - y).abs() / y).mean().item<double>(); },
            .epochs = 12,
            .batch = 16,
            .learning_rate = 1e-2,
            .clip = 5,
            .decay = true};
  }
  torch::nn::Sequential net = nullptr;
  torch::Tensor x, y;
  TrainingTask task;
};

bool same_bits(const torch::nn::Module& a, const torch::nn::Module& b) {
  const auto first = a.parameters();
  const auto second = b.parameters();
  for (size_t i = 0; i < first.size(); ++i) {
    if (!torch::equal(first[i], second[i])) return false;
  }
  return first.size() == second.size();
}

class Checkpoint : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              (std::string("checkpoint_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST(Training, IsRepeatableAndDependsOnTheSeed) {
  Line a;
  Line b;
  Line c;
  const auto log = run_training(a.task, {.seed = 5});
  ASSERT_TRUE(log.ok());
  ASSERT_TRUE(run_training(b.task, {.seed = 5}).ok());
  ASSERT_TRUE(run_training(c.task, {.seed = 6}).ok());
  EXPECT_TRUE(same_bits(*a.net, *b.net));
  EXPECT_FALSE(same_bits(*a.net, *c.net));
  EXPECT_EQ(log->epochs.size(), 12U);
  EXPECT_LT(log->best_validation_error, log->epochs.front().validation_error);
}

TEST(Training, KeepsTheBestWeightsAndStopsWhereNothingGetsBetter) {
  Line line;
  int calls = 0;
  line.task.validation_error = [&] { return ++calls == 3 ? 0.1 : 0.5; };
  std::vector<torch::Tensor> third;
  const auto log = run_training(line.task, {.patience = 4, .progress = [&](const EpochReport& report) {
                                              if (report.epoch != 3) return;
                                              for (const auto& p : line.net->parameters())
                                                third.push_back(p.detach().clone());
                                            }});
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(log->best_epoch, 3);
  EXPECT_EQ(log->epochs.size(), 7U);
  const auto left = line.net->parameters();
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_TRUE(torch::equal(left[i], third[i].to(torch::kFloat16).to(torch::kFloat32)));
  }
}

TEST_F(Checkpoint, AResumedRunEqualsAnUninterruptedOne) {
  Line whole;
  const auto expected = run_training(whole.task, {});
  ASSERT_TRUE(expected.ok());

  Line first;
  // Interrupted after five epochs: the time limit is checked before each.
  ASSERT_TRUE(run_training(first.task, {.epochs = 12, .seconds = 1e-9, .checkpoint = folder_.string()}).ok());
  Line second(99);  // other weights, which the checkpoint replaces
  const auto resumed = run_training(
      second.task, {.checkpoint = folder_.string(), .resume = true, .curve = (folder_ / "c.csv").string()});
  ASSERT_TRUE(resumed.ok()) << resumed.error().message();
  EXPECT_TRUE(same_bits(*whole.net, *second.net));
  ASSERT_EQ(resumed->epochs.size(), 12U);
  EXPECT_EQ(resumed->best_epoch, expected->best_epoch);
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(resumed->epochs[i].training_loss, expected->epochs[i].training_loss);

  std::ifstream curve(folder_ / "c.csv");
  int lines = 0;
  for (std::string line; std::getline(curve, line);) ++lines;
  EXPECT_EQ(lines, 13);
}

TEST_F(Checkpoint, AForeignFileIsRefused) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "checkpoint.pt") << "not one";
  Line line;
  const auto log = run_training(line.task, {.checkpoint = folder_.string(), .resume = true});
  ASSERT_FALSE(log.ok());
  EXPECT_NE(log.error().message().find("checkpoint.pt"), std::string::npos);
}

TEST_F(Checkpoint, AModuleIsReadAsItWasWrittenAndAnotherIsRefused) {
  fs::create_directories(folder_);
  const std::string path = (folder_ / "m.pt").string();
  Line a(1);
  Line b(2);
  ASSERT_TRUE(save_module(*a.net, path).ok());
  ASSERT_TRUE(load_module(*b.net, path).ok());
  EXPECT_TRUE(same_bits(*a.net, *b.net));
  torch::nn::Sequential other(torch::nn::Linear(1, 9), torch::nn::ReLU(), torch::nn::Linear(9, 1));
  EXPECT_FALSE(load_module(*other, path).ok());
  EXPECT_FALSE(load_module(*other, path + ".missing").ok());
}

TEST(Training, FaultsAreSaid) {
  Line line;
  line.task.samples = 0;
  EXPECT_FALSE(run_training(line.task, {}).ok());
  EXPECT_FALSE(device_named("tpu").ok());
  EXPECT_TRUE(device_named("cpu").ok());
  EXPECT_TRUE(device_named("auto").ok());
}

}  // namespace
}  // namespace forerun::learn
