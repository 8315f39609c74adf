#include "lab/dataset/features.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lab/dataset/test_data.h"

namespace forerun::learn {
namespace {

TEST(Vocabulary, UnknownNamesShareTheFirstPlace) {
  OpVocabulary vocabulary;
  vocabulary.add("aten.mm.default");
  vocabulary.add("aten.relu.default");
  vocabulary.add("aten.mm.default");
  EXPECT_EQ(vocabulary.size(), 3);
  EXPECT_EQ(vocabulary.index_of("aten.mm.default"), 1);
  EXPECT_EQ(vocabulary.index_of("aten.relu.default"), 2);
  EXPECT_EQ(vocabulary.index_of("aten.add.Tensor"), 0);
  const auto again = OpVocabulary::from_json(vocabulary.to_json());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->index_of("aten.relu.default"), 2);
  EXPECT_FALSE(OpVocabulary::from_json(nlohmann::json(7)).ok());
}

TEST(Scale, StandardIsMeanAndDeviation) {
  Scaler scaler(Scaler::Kind::standard, 2);
  for (const float x : {1.0F, 2.0F, 3.0F, 6.0F}) scaler.see(std::vector<float>{x, 5});
  scaler.finish();
  std::vector<float> row = {3, 5};
  scaler.apply(row);
  EXPECT_FLOAT_EQ(row[0], 0);  // mean 3, deviation sqrt(14/4)
  EXPECT_FLOAT_EQ(row[1], 0);
  row = {6, 99};
  scaler.apply(row);
  EXPECT_NEAR(row[0], 3 / std::sqrt(3.5), 1e-6);
  EXPECT_FLOAT_EQ(row[1], 0);  // never varied
  EXPECT_NEAR(scaler.restore(row[0], 0), 6, 1e-5);
}

TEST(Scale, MinMaxIsFromNoneToOneAndWeightsCount) {
  Scaler scaler(Scaler::Kind::min_max, 1);
  for (const float x : {2.0F, 4.0F, 10.0F}) scaler.see(std::vector<float>{x});
  scaler.finish();
  std::vector<float> row = {4};
  scaler.apply(row);
  EXPECT_FLOAT_EQ(row[0], 0.25F);

  Scaler weighted(Scaler::Kind::standard, 1);
  weighted.see(std::vector<float>{0}, 3);
  weighted.see(std::vector<float>{4}, 1);
  weighted.finish();
  row = {1};
  weighted.apply(row);
  EXPECT_NEAR(row[0], 0, 1e-7);
  const auto again = Scaler::from_json(weighted.to_json());
  ASSERT_TRUE(again.ok());
  row = {4};
  std::vector<float> same = {4};
  weighted.apply(row);
  again->apply(same);
  EXPECT_EQ(row, same);
  EXPECT_FALSE(Scaler::from_json(nlohmann::json::object()).ok());
}

TEST(Features, ColumnsStandWhereTheyShould) {
  DataSet data;
  OpVocabulary vocabulary;
  vocabulary.add("203");
  OpRow row;
  row.name = data.intern_name("203");
  row.phase = Phase::backward;
  row.dtype = DType::float16;
  row.set(Amount::flops, 1000);
  row.hyper[1] = 63;
  Example example;
  example.batch = 8;
  const FeatureEncoder encoder({.amounts = {Amount::flops}, .hyper = 2}, vocabulary);
  ASSERT_EQ(encoder.width(), 2 + 3 + 3 + 1 + 2 + 2U);
  std::vector<float> out(encoder.width());
  encoder.encode(data, example, row, out);
  const auto ln = [](double x) { return static_cast<float>(std::log1p(x)); };
  EXPECT_EQ(out, (std::vector<float>{0, 1, 0, 1, 0, 0, 1, 0, ln(1000), 0, ln(63), 3, 0}));
}

TEST(Features, TheAuthorsOfEtsHave66) {
  OpVocabulary vocabulary;
  for (int i = 0; i < 25; ++i) vocabulary.add(std::to_string(i));
  EXPECT_EQ(FeatureEncoder({.amounts = {Amount::flops, Amount::bytes_read}}, vocabulary).width(), 66U);
}

TEST(Features, ASavedEncoderGivesTheSameRows) {
  const DataSet data = made_up_data(6, 2);
  const Selection train = select(data, Split::train);
  FeatureEncoder encoder({.cls = true, .setup = true}, OpVocabulary::of(data, train));
  encoder.fit_scaler(Scaler::Kind::standard, data, train);
  const auto again = FeatureEncoder::from_json(nlohmann::json::parse(encoder.to_json().dump()));
  ASSERT_TRUE(again.ok()) << again.error().message();
  for (const Example& example : data.examples()) EXPECT_EQ(encoder.encode(data, example), again->encode(data, example));

  nlohmann::json broken = encoder.to_json();
  broken["hyper"] = 5;
  EXPECT_FALSE(FeatureEncoder::from_json(broken).ok());
  broken.erase("hyper");
  EXPECT_FALSE(FeatureEncoder::from_json(broken).ok());
}

}  // namespace
}  // namespace forerun::learn
