#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/data_dir.h"
#include "base/json_file.h"
#include "lab/simulation/drawn_model.h"
#include "lab/simulation/random_network.h"
#include "lab/simulation/simulated_iterations.h"
#include "predict/predict.h"

namespace forerun::simulation {
namespace {

class Simulation : public testing::Test {
 protected:
  void SetUp() override {
    auto cost_models = load_cost_models();
    ASSERT_TRUE(cost_models) << cost_models.error().message();
    cost_models_ = std::make_unique<CostModels>(std::move(*cost_models));
    auto device = cost_models_->devices.find("h200");
    ASSERT_TRUE(device);
    device_ = std::make_unique<Device>(*device);
  }
  learn::DataSet simulated(const SimulationOptions& options) {
    auto data = simulate_iterations(options, *device_, *cost_models_);
    EXPECT_TRUE(data) << data.error().message();
    return std::move(*data);
  }
  std::unique_ptr<CostModels> cost_models_;
  std::unique_ptr<Device> device_;
};

TEST(Drawing, IsTheSameForASeedAndStaysInItsRanges) {
  Drawing a(7);
  Drawing b(7);
  double sum = 0;
  for (int i = 0; i < 2000; ++i) {
    const int64_t drawn = a.log_integer(3, 700);
    EXPECT_EQ(drawn, b.log_integer(3, 700));
    EXPECT_GE(drawn, 3);
    EXPECT_LE(drawn, 700);
    EXPECT_EQ(a.log_multiple(16, 320, 16) % 16, 0);
    b.log_multiple(16, 320, 16);
    const double normal = a.normal();
    EXPECT_EQ(normal, b.normal());
    sum += normal;
    EXPECT_TRUE((std::set<int>{1, 2}).contains(a.weighted<int>({{1, 0.5}, {2, 0.5}, {3, 0}})));
    b.uniform();
  }
  EXPECT_NEAR(sum / 2000, 0, 0.1);
}

TEST(DrawnModels, AreOfTrainingFamiliesAloneButForRandomOnes) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder);
  auto split = JsonObject::read(*folder / "h200" / "split.json");
  ASSERT_TRUE(split);
  const std::vector<std::string> train = split->texts("train");
  std::set<std::string> drawn(drawn_families().begin(), drawn_families().end());
  EXPECT_EQ(drawn.erase("random"), 1U);
  EXPECT_EQ(drawn.erase("randwire"), 1U);
  EXPECT_EQ(drawn, (std::set<std::string>{train.begin(), train.end()}));
}

TEST(DrawnModels, CanBeBuilt) {
  std::set<std::string> families(drawn_families().begin(), drawn_families().end());
  for (const std::string& family : families) {
    Drawing draw(11);
    int built = 0;
    for (const Load load : {Load::light, Load::full, Load::largest}) {
      for (int i = 0; i < 8; ++i) {
        const auto model = draw_model(family, load, draw);
        if (!model) continue;
        ++built;
        EXPECT_GT(model->forward.op_count(), 2U) << family;
      }
    }
    EXPECT_GE(built, 18) << family << ": most draws are models";
  }
  Drawing draw(1);
  EXPECT_FALSE(draw_model("vgg", Load::light, draw)) << "a family that is judged";
}

TEST(RandomNetworks, DifferFromOneAnother) {
  std::set<std::pair<size_t, int64_t>> kinds;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Drawing draw(seed);
    const auto image = random_image_network(8, 96, draw);
    ASSERT_TRUE(image) << seed << ": " << image.error().message();
    EXPECT_EQ(image->input.kind, InputKind::image);
    const auto tokens = random_token_network(4, draw);
    ASSERT_TRUE(tokens) << seed << ": " << tokens.error().message();
    kinds.insert({image->forward.op_count(), image->forward.parameter_count()});
    kinds.insert({tokens->forward.op_count(), tokens->forward.parameter_count()});
  }
  EXPECT_GE(kinds.size(), 110U);
}

TEST_F(Simulation, IsTheSameWhateverTheNumberOfThreads) {
  const learn::DataSet one = simulated({.count = 24, .seed = 3, .traced = 8, .threads = 1});
  const learn::DataSet two = simulated({.count = 24, .seed = 3, .traced = 8, .threads = 2});
  ASSERT_EQ(one.examples().size(), 24U);
  ASSERT_EQ(two.examples().size(), 24U);
  for (size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(one.examples()[i].id, two.examples()[i].id);
    EXPECT_EQ(one.examples()[i].targets, two.examples()[i].targets);
    EXPECT_EQ(one.examples()[i].host_slowness, two.examples()[i].host_slowness);
  }
  EXPECT_EQ(one.rows(), two.rows());
}

// Layers of these run side by side on streams, and GPU busy time is the sum of all kernels.
bool recurrent(const learn::DataSet& data, const learn::Example& example) {
  return std::any_of(example.ops.begin(), example.ops.end(),
                     [&](uint32_t row) { return data.rows()[row].cls == OpClass::rnn; });
}

TEST_F(Simulation, WithoutTreesSaysSo) {
  const learn::DataSet learned = simulated({.count = 4, .traced = 4});
  EXPECT_EQ(learned.source.find("analytic"), std::string::npos) << learned.source;
  cost_models_->residual_model.reset();
  const learn::DataSet analytic = simulated({.count = 4, .traced = 4});
  EXPECT_NE(analytic.source.find("analytic"), std::string::npos) << analytic.source;
  EXPECT_NE(analytic.examples()[0].targets.op_us, learned.examples()[0].targets.op_us);
}

TEST_F(Simulation, LabelsAreWholeAndOpTimesAddUp) {
  const learn::DataSet data = simulated({.count = 40, .seed = 5, .traced = 20, .threads = 2});
  size_t told = 0;
  for (size_t i = 0; i < data.examples().size(); ++i) {
    const learn::Example& example = data.examples()[i];
    const learn::Targets& targets = example.targets;
    EXPECT_EQ(example.group.rfind(kSimulatedGroup, 0), 0U);
    EXPECT_EQ(example.device, "NVIDIA H200");
    EXPECT_GT(targets.iteration_ms, 0);
    if (!recurrent(data, example)) {
      EXPECT_LE(targets.gpu_busy_ms, targets.iteration_ms * 1.1);
    }
    EXPECT_GT(targets.peak_bytes, 0);
    EXPECT_GE(targets.reserved_bytes, targets.peak_bytes);
    told += example.host_slowness > 0;
    if (i >= 20) {
      EXPECT_TRUE(targets.op_us.empty());
      for (const uint32_t row : example.ops) EXPECT_EQ(data.rows()[row].phase, Phase::forward);
      continue;
    }
    const double gpu = std::accumulate(targets.op_us.begin(), targets.op_us.end(), 0.0);
    const double gaps = std::accumulate(targets.gap_us.begin(), targets.gap_us.end(), 0.0);
    // Beside what differs from run to run.
    EXPECT_NEAR(gpu / 1e3 / targets.gpu_busy_ms, 1, 0.03) << example.id;
    // Kernels of recurrent layers run side by side, so that they take longer together than the layer.
    const double most = recurrent(data, example) ? 1.15 : 1.05;
    EXPECT_GT((gpu + gaps) / 1e3 / targets.iteration_ms, 0.95) << example.id;
    EXPECT_LT((gpu + gaps) / 1e3 / targets.iteration_ms, most) << example.id;
    EXPECT_EQ(targets.host_us.size(), example.ops.size());
  }
  EXPECT_GT(told, 8U);
  EXPECT_LT(told, 32U);
}

}  // namespace
}  // namespace forerun::simulation
