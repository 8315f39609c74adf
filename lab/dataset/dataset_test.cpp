#include "lab/dataset/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "lab/dataset/test_data.h"

namespace forerun::learn {
namespace {

class DataSetFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/data_set_" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".bin";
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  std::string path_;
};

TEST(DataSet, EqualRowsAreKeptOnce) {
  DataSet data;
  OpRow row;
  row.name = data.intern_name("aten.mm.default");
  row.set(Amount::flops, 100);
  EXPECT_EQ(data.intern(row), 0U);
  EXPECT_EQ(data.intern(row), 0U);
  row.hyper[29] = 1;
  EXPECT_EQ(data.intern(row), 1U);
  EXPECT_EQ(data.rows().size(), 2U);
}

TEST(DataSet, AppendsTheExamplesOfAnother) {
  DataSet both;
  both.intern_name("a name that only the first has");
  const DataSet other = made_up_data(4, 3);
  both.append(other);
  both.append(other);
  ASSERT_EQ(both.examples().size(), 2 * other.examples().size());
  EXPECT_EQ(both.rows().size(), other.rows().size()) << "equal rows are one";
  for (size_t i = 0; i < other.examples().size(); ++i) {
    const Example& there = other.examples()[i];
    const Example& here = both.examples()[other.examples().size() + i];
    ASSERT_EQ(here.ops.size(), there.ops.size());
    for (size_t k = 0; k < there.ops.size(); ++k) {
      const OpRow& row = both.rows()[here.ops[k]];
      EXPECT_EQ(both.name_of_row(row), other.name_of_row(other.rows()[there.ops[k]]));
      EXPECT_EQ(row.hyper, other.rows()[there.ops[k]].hyper);
    }
    EXPECT_EQ(here.targets, there.targets);
  }
}

TEST_F(DataSetFile, ReadsWhatWasWritten) {
  DataSet data = made_up_data(4, 3);
  data.examples()[0].host_slowness = 1.25;
  data.examples()[0].targets.host_us.assign(data.examples()[0].ops.size(), 7.5F);
  data.examples()[0].channels_last = true;
  data.examples()[0].optimizer = {OptimizerKind::adamw, OptimizerImpl::fused, 0.1, 0.2, 0.3};
  data.examples()[1].precision = Precision::amp_bf16;
  data.examples()[1].device = "NVIDIA H200";
  data.examples()[2].parameters = 12345;
  data.examples()[2].configuration = "resnet|{}|image|8";
  data.examples()[2].kept_back = true;
  ASSERT_TRUE(data.save(path_).ok());
  const auto read = DataSet::load(path_);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->source, data.source);
  EXPECT_EQ(read->rows(), data.rows());
  ASSERT_EQ(read->examples().size(), data.examples().size());
  for (size_t i = 0; i < data.examples().size(); ++i) {
    const Example& a = data.examples()[i];
    const Example& b = read->examples()[i];
    EXPECT_EQ(a.id, b.id);
    EXPECT_EQ(a.group, b.group);
    EXPECT_EQ(a.split, b.split);
    EXPECT_EQ(a.configuration, b.configuration);
    EXPECT_EQ(a.kept_back, b.kept_back);
    EXPECT_EQ(a.batch, b.batch);
    EXPECT_EQ(a.precision, b.precision);
    EXPECT_EQ(a.optimizer.kind, b.optimizer.kind);
    EXPECT_EQ(a.optimizer.impl, b.optimizer.impl);
    EXPECT_EQ(a.optimizer.weight_decay, b.optimizer.weight_decay);
    EXPECT_EQ(a.channels_last, b.channels_last);
    EXPECT_EQ(a.device, b.device);
    EXPECT_EQ(a.parameters, b.parameters);
    EXPECT_EQ(a.ops, b.ops);
    EXPECT_EQ(a.edges, b.edges);
    EXPECT_EQ(a.targets, b.targets);
  }
}

TEST_F(DataSetFile, ACutFileIsAnErrorWhereverItIsCut) {
  ASSERT_TRUE(made_up_data(2, 1).save(path_).ok());
  const std::string whole = bytes();
  for (size_t size = 0; size < whole.size(); size += 7) {
    write(whole.substr(0, size));
    EXPECT_FALSE(DataSet::load(path_).ok()) << size;
  }
  write(whole + "x");
  EXPECT_FALSE(DataSet::load(path_).ok());
}

TEST_F(DataSetFile, ABrokenByteIsAnErrorOrAnotherDataSetButNeverAFault) {
  ASSERT_TRUE(made_up_data(2, 1).save(path_).ok());
  const std::string whole = bytes();
  size_t refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 0xFF);
    write(broken);
    refused += DataSet::load(path_).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, whole.size() / 50);
}

TEST_F(DataSetFile, OtherFilesAreRefused) {
  write("{\"schema\": \"run/2\"}");
  const auto read = DataSet::load(path_);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message().find(path_), std::string::npos);
  EXPECT_FALSE(DataSet::load(path_ + ".missing").ok());
}

std::set<std::string> groups_of(const DataSet& data, const Selection& examples) {
  std::set<std::string> groups;
  for (const uint32_t i : examples) groups.insert(data.examples()[i].group);
  return groups;
}

TEST(Split, ValidationTakesWholeGroupsOfTheTrainingExamples) {
  const DataSet data = made_up_data(30, 4);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Fold fold = split_for_validation(data, 0.2, seed);
    EXPECT_EQ(fold.train.size() + fold.validation.size(), select(data, Split::train).size());
    EXPECT_EQ(fold.validation.size(), 16U);  // a fifth of 80
    for (const std::string& group : groups_of(data, fold.validation)) {
      EXPECT_FALSE(groups_of(data, fold.train).contains(group));
    }
    for (const uint32_t i : fold.validation) EXPECT_EQ(data.examples()[i].split, Split::train);
  }
  EXPECT_NE(split_for_validation(data, 0.2, 1).validation, split_for_validation(data, 0.2, 2).validation);
}

TEST(Split, NeitherPartIsEmptyWhereThereAreTwoGroups) {
  const DataSet data = made_up_data(3, 5);  // two groups to train on
  for (const double fraction : {0.01, 0.5, 0.99}) {
    const Fold fold = split_for_validation(data, fraction, 3);
    EXPECT_FALSE(fold.train.empty());
    EXPECT_EQ(fold.validation.empty(), fraction == 0.01);
  }
  EXPECT_TRUE(split_for_validation(data, 0, 3).validation.empty());
}

TEST(Split, GroupsByTheirBeginning) {
  const DataSet data = made_up_data(12, 3);
  const std::vector<std::string> beginnings = {"g1", "g11"};  // g1; g10 and g11 are test groups
  const Fold fold = split_by_groups(data, beginnings);
  EXPECT_EQ(fold.train.size() + fold.validation.size(), select(data, Split::train).size());
  EXPECT_EQ(fold.validation.size(), 3U);
  for (const uint32_t i : fold.validation) EXPECT_EQ(data.examples()[i].group, "g1");
}

// Made-up data of measured configurations, two runs of each; the first of each group is kept back.
DataSet measured_data(int groups, int each) {
  DataSet data = made_up_data(groups, 2 * each);
  for (size_t i = 0; i < data.examples().size(); ++i) {
    Example& example = data.examples()[i];
    example.configuration = example.group + "|" + std::to_string(i / 2 % static_cast<size_t>(each));
    example.kept_back = i % static_cast<size_t>(2 * each) == 0;
  }
  return data;
}

std::set<std::string> configurations_of(const DataSet& data, const Selection& examples) {
  std::set<std::string> configurations;
  for (const uint32_t i : examples) configurations.insert(data.examples()[i].configuration);
  return configurations;
}

bool share_one(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& text) { return b.contains(text); });
}

TEST(Division, IsReadAsItIsWritten) {
  for (const char* text : {"families", "random:1", "random:17"}) {
    const auto division = parse_division(text);
    ASSERT_TRUE(division.ok()) << text;
    EXPECT_EQ(to_text(*division), text);
  }
  EXPECT_EQ(*parse_division("random"), *parse_division("random:1"));
  for (const char* text : {"", "family", "random:", "random:x", "random:-1", "random:1x", "randomly", "Random"}) {
    EXPECT_FALSE(parse_division(text).ok()) << text;
  }
}

TEST(Division, AtRandomKeepsConfigurationsTogether) {
  std::set<std::string> judged_first;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    DataSet data = measured_data(30, 10);
    ASSERT_TRUE(divide(data, {.random = true, .seed = seed}).ok());
    const Selection judged = select(data, Split::test);
    const auto judged_words = configurations_of(data, judged);
    const auto trained_words = configurations_of(data, select(data, Split::train));
    EXPECT_FALSE(share_one(judged_words, trained_words));
    const double share =
        static_cast<double>(judged_words.size()) / static_cast<double>(judged_words.size() + trained_words.size());
    EXPECT_NEAR(share, kRandomlyJudged, 0.05);
    EXPECT_GT(groups_of(data, judged).size(), 20U) << "of all families, whatever part they were in";
    EXPECT_EQ(select(data, Split::ood).size(), 30U);
    for (const uint32_t i : select(data, Split::ood)) EXPECT_TRUE(data.examples()[i].kept_back);
    if (seed == 1) judged_first = judged_words;
    EXPECT_EQ(judged_words == judged_first, seed == 1);

    const Fold fold = split_for_validation(data, 0.15, seed);
    EXPECT_EQ(fold.train.size() + fold.validation.size(), select(data, Split::train).size());
    EXPECT_FALSE(share_one(configurations_of(data, fold.train), configurations_of(data, fold.validation)));
    EXPECT_GT(groups_of(data, fold.validation).size(), 15U);
  }
}

// Weights that are kept must not come to be judged on what they were trained on.
TEST(Division, OfAConfigurationIsTheSameForGood) {
  DataSet data = measured_data(8, 5);
  ASSERT_TRUE(divide(data, {.random = true}).ok());
  EXPECT_EQ(configurations_of(data, select(data, Split::test)),
            (std::set<std::string>{"g3|1", "g4|2", "g4|4", "g5|1", "g7|3"}));
}

TEST(Division, AtRandomLeavesSimulatedExamplesToBeTrainedOn) {
  DataSet data = measured_data(10, 5);
  DataSet simulated = made_up_data(3, 4);
  for (Example& example : simulated.examples()) {
    example.group = "simulated/" + example.group;
    example.split = Split::train;
  }
  data.append(simulated);
  ASSERT_TRUE(divide(data, {.random = true}).ok());
  const Fold fold = split_for_validation(data, 0.2, 1);
  size_t trained = 0;
  for (const uint32_t i : fold.train) trained += data.examples()[i].configuration.empty() ? 1 : 0;
  EXPECT_EQ(trained, simulated.examples().size());
  EXPECT_FALSE(fold.validation.empty());
}

TEST(Division, AtRandomNeedsConfigurations) {
  DataSet traces = made_up_data(6, 3);
  const Status judged = divide(traces, {.random = true});
  ASSERT_FALSE(judged.ok());
  EXPECT_NE(judged.error().message().find("configuration"), std::string::npos);
  for (Example& example : traces.examples()) example.split = Split::train;
  const Status simulated = divide(traces, {.random = true});
  ASSERT_FALSE(simulated.ok());
  EXPECT_NE(simulated.error().message().find("measured"), std::string::npos);
  EXPECT_TRUE(divide(traces, {}).ok());
}

}  // namespace
}  // namespace forerun::learn
