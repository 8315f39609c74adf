#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "lab/dataset/metrics.h"
#include "lab/dataset/test_data.h"
#include "lab/dataset/windows.h"
#include "lab/learn/ets/ets_predictor.h"
#include "lab/learn/ets/lane_times.h"
#include "lab/learn/ets/op_scales.h"
#include "lab/learn/predictors.h"
#include "lab/trees/op_figures.h"

namespace forerun::learn {
namespace {

namespace fs = std::filesystem;

TEST(Windows, StartsAsInThePaper) {
  EXPECT_EQ(window_starts(12, 12, 3), (std::vector<int64_t>{0}));
  EXPECT_EQ(window_starts(13, 12, 3), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(window_starts(20, 12, 4), (std::vector<int64_t>{0, 4, 8}));
  EXPECT_EQ(window_starts(4, 12, 3), (std::vector<int64_t>{0}));
  EXPECT_TRUE(window_starts(0, 12, 3).empty());
}

// The plain twin: for each op, look at every window whether it covers it.
std::vector<float> plain_average(const std::vector<float>& values, const std::vector<int64_t>& starts, int64_t count,
                                 int64_t width, int64_t columns) {
  std::vector<float> means;
  for (int64_t op = 0; op < count; ++op) {
    for (int64_t column = 0; column < columns; ++column) {
      double sum = 0;
      int64_t times = 0;
      for (size_t window = 0; window < starts.size(); ++window) {
        const int64_t place = op - starts[window];
        if (place < 0 || place >= width) continue;
        sum += values[window * static_cast<size_t>(width * columns) + static_cast<size_t>(place * columns + column)];
        ++times;
      }
      means.push_back(static_cast<float>(sum / static_cast<double>(times)));
    }
  }
  return means;
}

TEST(Windows, AveragesEqualThePlainTwin) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    const int64_t width = 1 + static_cast<int64_t>(random() % 16);
    const int64_t stride = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(width));
    const int64_t count = 1 + static_cast<int64_t>(random() % 60);
    const auto starts = window_starts(count, width, stride);
    ASSERT_GE(starts.back() + width, count);
    if (starts.size() > 1) {
      ASSERT_LT(starts[starts.size() - 2] + width, count);
    }
    std::vector<float> values(starts.size() * static_cast<size_t>(width) * 2);
    for (float& value : values) value = static_cast<float>(random() % 1000);
    EXPECT_EQ(average_windows(values, starts, count, width, 2), plain_average(values, starts, count, width, 2));
  }
}

TEST(Windows, FirstAlikeEqualsThePlainTwin) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 100; ++round) {
    const size_t columns = 1 + random() % 4;
    const size_t count = random() % 40;
    std::vector<int64_t> rows(columns * count);
    for (int64_t& value : rows) value = static_cast<int64_t>(random() % 2);
    std::vector<int64_t> plain;
    for (size_t i = 0; i < count; ++i) {
      const auto begin = [&](size_t row) { return rows.begin() + static_cast<std::ptrdiff_t>(row * columns); };
      size_t first = 0;
      while (!std::equal(begin(i), begin(i + 1), begin(first))) ++first;
      plain.push_back(static_cast<int64_t>(first));
    }
    EXPECT_EQ(first_alike(rows, static_cast<int64_t>(columns)), plain);
    const std::vector<float> floats(rows.begin(), rows.end());
    EXPECT_EQ(first_alike(floats, static_cast<int64_t>(columns)), plain);
  }
}

TrainOptions quick(const Settings& settings) {
  Settings all = {{"layers", "1"}, {"hidden", "24"}};
  for (const auto& [key, value] : settings) all[key] = value;
  return {.epochs = 30, .batch = 32, .learning_rate = 5e-3, .device = "cpu", .settings = all};
}

double test_error(EtsPredictor& ets, const DataSet& data) {
  const Selection test = select(data, Split::test);
  return evaluate(data, test, ets.predict(data, test), Target::iteration_ms).all.mre;
}

TEST(Ets, LearnsWhatHoldsForUnseenFamilies) {
  const DataSet data = made_up_data(9, 12);
  const double naive = naive_error(data, Target::iteration_ms);
  EtsPredictor ets;
  const auto log = ets.train(data, quick({}));
  ASSERT_TRUE(log.ok()) << log.error().message();
  const double error = test_error(ets, data);
  EXPECT_LT(error, 0.5 * naive) << naive;
  EXPECT_LT(log->best_validation_error, 0.5 * naive);
}

// Windows that are alike are computed once, within an iteration and across those asked together.
TEST(Ets, AskedTogetherOrAloneSaysTheSame) {
  DataSet data = made_up_data(6, 3);
  for (Example& example : data.examples()) {  // the same ops over and over, as in repeated blocks
    for (size_t i = 12; i < example.ops.size(); ++i) example.ops[i] = example.ops[i % 12];
  }
  for (const char* target : {"ms", "ratio"}) {
    EtsPredictor ets;
    TrainOptions options = quick({{"target", target}});
    options.epochs = 2;
    ASSERT_TRUE(ets.train(data, options).ok());
    Selection all(data.examples().size());
    std::iota(all.begin(), all.end(), 0U);
    const auto together = ets.predict(data, all);
    for (const uint32_t i : all) {
      const Prediction alone = ets.predict(data, {i}).front();
      EXPECT_NEAR(*alone.iteration_ms / *together[i].iteration_ms, 1, 1e-4) << target;
      ASSERT_EQ(alone.op_us.size(), together[i].op_us.size());
      for (size_t op = 0; op < alone.op_us.size(); ++op) EXPECT_NEAR(alone.op_us[op], together[i].op_us[op], 0.05);
    }
  }
}

TEST(Ets, EveryCellAndLossTrains) {
  const DataSet data = made_up_data(6, 3);
  const Settings choices[] = {{{"cell", "rnn"}},
                              {{"cell", "gru"}, {"direction", "one"}},
                              {{"cell", "gcn"}},
                              {{"cell", "transformer"}, {"loss", "huber"}},
                              {{"cell", "mlp"}},
                              {{"target", "log"}, {"loss", "smooth_l1"}},
                              {{"loss", "mse"}},
                              {{"width", "5"}, {"stride", "5"}, {"layers", "2"}},
                              {{"sums", "3"}, {"balance", "0.5"}},
                              {{"target", "ratio"}, {"logs", "0.2"}, {"layers", "2"}, {"dropout", "0.1"}}};
  for (const Settings& settings : choices) {
    EtsPredictor ets;
    TrainOptions options = quick(settings);
    options.epochs = 4;
    const auto log = ets.train(data, options);
    ASSERT_TRUE(log.ok()) << log.error().message();
    EXPECT_LT(log->epochs.back().training_loss, log->epochs.front().training_loss) << settings.begin()->second;
    for (const auto& [key, value] : settings) EXPECT_EQ(ets.settings().at(key), value);
  }
}

// Times are drawn so that most are short and a few long: medians add up to too little, and the sum's weight mends that.
TEST(Ets, SumsAreRightWhereTimesAreSkewed) {
  DataSet data = made_up_data(6, 12);
  std::mt19937_64 random(5);
  for (Example& example : data.examples()) {
    double total = 0;
    for (size_t i = 0; i < example.ops.size(); ++i) {
      example.targets.op_us[i] = random() % 4 == 0 ? 4000.0F : 100.0F;
      example.targets.gap_us[i] = 0;
      total += example.targets.op_us[i];
    }
    example.targets.iteration_ms = total / 1000;
  }
  const auto bias = [&](const char* sums) {
    EtsPredictor ets;
    EXPECT_TRUE(ets.train(data, quick({{"sums", sums}})).ok());
    const Selection test = select(data, Split::test);
    return evaluate(data, test, ets.predict(data, test), Target::iteration_ms).all.bias;
  };
  const double plain = bias("0");
  EXPECT_LT(plain, -0.5);
  EXPECT_GT(bias("10"), 0.5 * plain);
}

// Iterations with one linear layer as in the authors' traces, for batches of 2 to the power of `first` and more. Its
// backward is not traced: it stands as gap behind the backward op before.
DataSet linear_layers(Split split, int first, int last, DataSet data = {}) {
  for (int power = first; power < last; ++power) {
    for (int i = 0; i < 6; ++i) {
      Example example;
      example.group = "g" + std::to_string(i);
      example.split = split;
      example.device = "T4";
      example.batch = 1 << power;
      double total = 0;
      const auto add = [&](const char* name, Phase phase, float units, double us, double gap) {
        OpRow row;
        row.name = data.intern_name(name);
        row.phase = phase;
        row.hyper[1] = static_cast<float>(example.batch);
        row.hyper[2] = row.hyper[12] = units;
        row.hyper[11] = name == kLinear ? 512.0F : 0.0F;
        row.set(Amount::flops, name == kLinear ? 1024 * example.batch * units : 0);
        example.ops.push_back(data.intern(row));
        example.targets.op_us.push_back(static_cast<float>(us));
        example.targets.gap_us.push_back(static_cast<float>(gap));
        total += us + gap;
      };
      const double units = 256 << (i % 3);
      const double us = example.batch * units * 512 * 2 / 5e6 + 20;
      add("5", Phase::forward, 1, 10, 60);
      add("201", Phase::forward, static_cast<float>(units), us, 40);
      add("7", Phase::forward, 1, 10, 60);
      add("7", Phase::backward, 1, 10, 60 + 2 * us);
      add("5", Phase::backward, 1, 10, 60);
      example.targets.iteration_ms = total / 1000;
      data.add(std::move(example));
    }
  }
  return data;
}

// Trained on batches up to 256, asked for some up to 32 times as large: a network that gives times stays far too low.
TEST(Ets, RatiosCarryOverToLargerLayers) {
  const DataSet data = linear_layers(Split::test, 11, 14, linear_layers(Split::train, 1, 9));
  const auto bias = [&](const Settings& settings) {
    EtsPredictor ets;
    TrainOptions options = quick(settings);
    options.validation = 0;
    options.epochs = 60;
    EXPECT_TRUE(ets.train(data, options).ok());
    const Selection test = select(data, Split::test);
    return evaluate(data, test, ets.predict(data, test), Target::iteration_ms).all.bias;
  };
  EXPECT_LT(bias({}), -0.5);
  EXPECT_LT(std::abs(bias({{"target", "ratio"}, {"logs", "0.3"}, {"balance", "1"}})), 0.35);
}

TEST(Ets, ScalesCountWhatIsNotTracedOnce) {
  DataSet data = linear_layers(Split::train, 6, 7);
  Example example = data.examples()[0];
  const auto scales = [&] {
    std::vector<uint32_t> places(example.ops.size());
    std::iota(places.begin(), places.end(), 0U);
    return scales_of(data, example, places);
  };
  const auto plain = scales();
  ASSERT_EQ(plain.size(), 5U);
  for (const size_t i : {0U, 1U, 2U, 4U}) EXPECT_EQ(plain[i].untraced_us, 0) << i;
  EXPECT_DOUBLE_EQ(plain[3].untraced_us, 1.8 * (plain[1].time_us - 10));
  EXPECT_FALSE(plain[1].bias);
  // A bias stands as a second op with the same figures.
  example.ops.insert(example.ops.begin() + 1, example.ops[1]);
  const auto twice = scales();
  EXPECT_DOUBLE_EQ(twice[4].untraced_us, plain[3].untraced_us);
  EXPECT_FALSE(twice[1].bias);
  EXPECT_TRUE(twice[2].bias && twice[2].repeats);
  EXPECT_LT(twice[2].time_us, twice[1].time_us / 2);
}

TEST(Ets, SeveralNetsAreAveraged) {
  const DataSet data = made_up_data(6, 4);
  const Selection test = select(data, Split::test);
  const auto trained = [&](uint64_t seed, const char* nets) {
    EtsPredictor ets;
    TrainOptions options = quick({{"nets", nets}});
    options.epochs = 2;
    options.seed = seed;
    options.validation = 0;
    EXPECT_TRUE(ets.train(data, options).ok());
    return ets.predict(data, test);
  };
  const auto first = trained(1, "1");
  const auto second = trained(2, "1");
  const auto both = trained(1, "2");
  for (size_t e = 0; e < test.size(); ++e) {
    EXPECT_NEAR(*both[e].iteration_ms, (*first[e].iteration_ms + *second[e].iteration_ms) / 2, 1e-6);
    EXPECT_NEAR(both[e].op_us[0], (first[e].op_us[0] + second[e].op_us[0]) / 2, 1e-2);
  }
}

TEST(Ets, ForgivesExamplesWithoutOps) {
  DataSet data = made_up_data(6, 2);
  Example empty;
  empty.group = "empty";
  empty.split = Split::test;
  data.add(empty);
  EtsPredictor ets;
  TrainOptions options = quick({});
  options.epochs = 1;
  ASSERT_TRUE(ets.train(data, options).ok());
  const Selection last = {static_cast<uint32_t>(data.examples().size() - 1)};
  EXPECT_EQ(ets.predict(data, last)[0].iteration_ms, 0);
  EXPECT_TRUE(ets.predict(data, {}).empty());
}

TEST(Ets, SettingsThatAreNoneAreRefused) {
  const DataSet data = made_up_data(3, 2);
  const Settings wrong[] = {{{"cell", "cnn"}}, {{"layer", "2"}}, {{"layers", "two"}}, {{"stride", "13"}},
                            {{"loss", "l2"}},  {{"nets", "0"}},  {{"balance", "2"}},  {{"sums", "-1"}}};
  for (const Settings& settings : wrong) {
    EtsPredictor ets;
    EXPECT_FALSE(ets.train(data, {.settings = settings}).ok()) << settings.begin()->first;
  }
}

TEST(Weights, AreReadBackToTheSameBits) {
  const std::string folder = testing::TempDir() + "/weights_round_trip";
  fs::remove_all(folder);
  const DataSet data = made_up_data(6, 4);
  EtsPredictor ets;
  TrainOptions options = quick({{"target", "log"}, {"nets", "2"}});
  options.epochs = 2;
  const auto log = ets.train(data, options);
  ASSERT_TRUE(log.ok());
  ASSERT_TRUE(save_weights(folder, "ets", ets, data, options, *log).ok());
  auto loaded = load_weights(folder);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->name, "ets");
  EXPECT_EQ(loaded->trained_on, "made up");
  const Selection test = select(data, Split::test);
  const auto before = ets.predict(data, test);
  const auto after = loaded->predictor->predict(data, test);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].iteration_ms, after[i].iteration_ms);
    EXPECT_EQ(before[i].op_us, after[i].op_us);
    EXPECT_EQ(before[i].gap_us, after[i].gap_us);
  }
  fs::resize_file(fs::path(folder) / "weights.pt", 100);
  EXPECT_FALSE(load_weights(folder).ok());
  std::ofstream(fs::path(folder) / "predictor.json") << "{\"settings\": 3, \"features\": {}}";
  EXPECT_FALSE(load_weights(folder).ok());
  std::ofstream(fs::path(folder) / "card.json") << "{\"predictor\": \"etz\", \"trained_on\": \"\"}";
  const auto unknown = load_weights(folder);
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message().find("ets"), std::string::npos);
  fs::remove_all(folder);
}

TEST(LaneTimes, AnIterationIsThatOfTheSlowerLane) {
  const Device device{.launch_gap = Nanoseconds(0)};
  const std::vector<uint32_t> places = {1, 2, 5};
  const Prediction by_gpu =
      lane_prediction(std::vector<float>{100, 200, 300}, std::vector<float>{10, 10, 10}, places, 6, device);
  EXPECT_NEAR(*by_gpu.iteration_ms, 0.6, 1e-6);
  EXPECT_NEAR(*by_gpu.gpu_busy_ms, 0.6, 1e-6);
  const Prediction by_host =
      lane_prediction(std::vector<float>{1, 2, 3}, std::vector<float>{40, 50, 60}, places, 6, device);
  EXPECT_NEAR(*by_host.iteration_ms, 0.15, 1e-6);
  EXPECT_NEAR(*by_host.gpu_busy_ms, 0.006, 1e-6);
  ASSERT_EQ(by_host.op_us.size(), 6U);
  EXPECT_EQ(by_host.op_us[5], 3);
  EXPECT_EQ(by_host.op_us[0], 0);
  const double gaps = by_host.gap_us[1] + by_host.gap_us[2] + by_host.gap_us[5];
  EXPECT_NEAR(gaps, 144, 1e-3);
  EXPECT_NEAR(by_host.gap_us[5] / by_host.gap_us[1], 40.0 / 50.0, 1e-5)
      << "behind the last op the first of the next iteration";
}

TEST(LaneTimes, HostTimeOfOpsWithoutKernelsGoesToTheNextOp) {
  Example example;
  example.targets.host_us = {1, 2, 4, 8, 16};
  EXPECT_EQ(lane_host_us(example, std::vector<uint32_t>{1, 2, 4}), (std::vector<float>{3, 4, 24}));
}

}  // namespace
}  // namespace forerun::learn
