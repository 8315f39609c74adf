#include "memory/convolution_cases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "base/output_file.h"

namespace forerun {
namespace {

// half, channels_last, transposed, groups, batch, channels, filters, kernel, its height, stride, dilation, padding,
// image, out_image, in_width, workspace
std::string line(const std::string& pass, const std::string& family, int64_t batch, int64_t bytes) {
  return pass + "\t" + family + "\t0\t0\t0\t1\t" + std::to_string(batch) + "\t6\t8\t9\t3\t1\t1\t1\t100\t100\t10\t" +
         std::to_string(bytes) + "\n";
}

ConvolutionShape shape(int64_t batch) {
  return {.batch = batch,
          .channels = 6,
          .filters = 8,
          .kernel = 9,
          .kernel_height = 3,
          .padding = 1,
          .image = 100,
          .out_image = 100,
          .in_width = 10};
}

// Six channels are padded to eight.
constexpr int64_t kInput = 100 * 8 * 4, kOutput = 100 * 8 * 4;  // bytes of a picture
constexpr int64_t kPaddedWeight = 8 * 8 * 9 * 4, kWeight = 6 * 8 * 9 * 4;

int64_t from_one(int64_t measured_batch, int64_t bytes, int64_t batch) {
  const auto cases = ConvolutionCases::parse(line("w", "-", measured_batch, bytes), "test");
  EXPECT_TRUE(cases.ok());
  return cases->bytes(ConvolutionPass::weight_gradient, shape(batch)).value_or(-1);
}

TEST(ConvolutionCases, GivesWhatWasMeasured) {
  EXPECT_EQ(from_one(64, 123456, 64), 123456);
  EXPECT_EQ(from_one(64, 0, 64), 0);
}

TEST(ConvolutionCases, ReadsAMeasurementAsAFormula) {
  EXPECT_EQ(from_one(64, 64 * (kInput + kOutput) + kPaddedWeight, 640), 640 * (kInput + kOutput) + kPaddedWeight);
  EXPECT_EQ(from_one(64, 64 * kInput, 640), 640 * kInput);
  EXPECT_EQ(from_one(64, 64 * kWeight, 640), 640 * kWeight);  // a product a picture
  EXPECT_EQ(from_one(64, 64 * (kInput + kOutput) + 20 * kWeight, 640), 640 * (kInput + kOutput) + 20 * kWeight);
  EXPECT_EQ(from_one(64, 1000, 640), 1000);
  const double all = 100 * 14 * 4;  // of a picture, not padded
  EXPECT_NEAR(static_cast<double>(from_one(64, static_cast<int64_t>(64 * all * 5), 6400)), 6400 * all * 5,
              6400 * all * 0.1);
}

TEST(ConvolutionCases, TakesTheMiddleOfTheNearest) {
  std::string text;
  for (int64_t batch = 60; batch < 64; ++batch) text += line("f", "-", batch, batch * kInput);
  text += line("f", "-", 64, 0);  // the nearest, but alone
  for (int64_t batch = 1; batch < 4; ++batch) text += line("f", "-", batch, 7);
  const auto cases = ConvolutionCases::parse(text, "test");
  ASSERT_TRUE(cases.ok());
  EXPECT_EQ(cases->bytes(ConvolutionPass::convolution, shape(62)), 62 * kInput);
  EXPECT_EQ(cases->bytes(ConvolutionPass::convolution, shape(2)), 7);
}

TEST(ConvolutionCases, KeepsKindsApart) {
  const auto cases = ConvolutionCases::parse(line("f", "-", 8, 5000), "test");
  ASSERT_TRUE(cases.ok());
  EXPECT_FALSE(cases->bytes(ConvolutionPass::weight_gradient, shape(8)).has_value());
  ConvolutionShape half = shape(8);
  half.half = true;
  EXPECT_FALSE(cases->bytes(ConvolutionPass::convolution, half).has_value());
  ConvolutionShape huge = shape(1 << 22);  // beyond 2 GiB, where nothing was measured: as the others
  EXPECT_TRUE(cases->bytes(ConvolutionPass::convolution, huge).has_value());
}

TEST(ConvolutionCases, LeavesAFamilyOut) {
  auto cases = ConvolutionCases::parse(line("f", "resnet", 8, 5000) + line("f", "-", 8, 100), "test");
  ASSERT_TRUE(cases.ok());
  EXPECT_EQ(cases->size(), 2U);
  cases->leave_out("vgg");
  EXPECT_EQ(cases->size(), 2U);
  cases->leave_out("resnet");
  EXPECT_EQ(cases->size(), 1U);
  EXPECT_EQ(cases->bytes(ConvolutionPass::convolution, shape(8)), 100);
}

TEST(ConvolutionCases, ArePackedByKindAndGiveTheSame) {
  std::string text = "# header\n";
  for (const char* pass : {"f", "d", "w"}) {
    for (const int64_t batch : {8, 16, 64}) text += line(pass, batch == 16 ? "resnet" : "-", batch, 1000 * batch);
  }
  const auto plain = ConvolutionFile::parse(text, "test");
  ASSERT_TRUE(plain.ok());
  const auto bytes = plain->packed();
  ASSERT_TRUE(bytes.ok());
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "packed_convolutions";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(write_whole_file((folder / "cases.bin").string(), *bytes).ok());
  auto packed = ConvolutionCases::load(folder / "cases.tsv");  // which is not there
  ASSERT_TRUE(packed.ok()) << packed.error().message();
  ConvolutionCases cases(*plain);
  for (const bool without : {false, true}) {
    if (without) cases.leave_out("resnet"), packed->leave_out("resnet");
    EXPECT_EQ(packed->size(), without ? 6U : 9U);
    for (const int64_t batch : {8, 20, 1000}) {
      for (const auto pass : {ConvolutionPass::convolution, ConvolutionPass::weight_gradient}) {
        ASSERT_TRUE(packed->bytes(pass, shape(batch)));
        EXPECT_EQ(packed->bytes(pass, shape(batch)), cases.bytes(pass, shape(batch)));
      }
    }
  }
  ASSERT_TRUE(write_whole_file((folder / "cases.bin").string(), bytes->substr(0, bytes->size() - 1)).ok());
  EXPECT_FALSE(ConvolutionCases::load(folder / "cases.tsv").ok());
}

// Few values of each number, so that many cases are equally far away and the order among them tells.
ConvolutionShape random_shape(std::mt19937& random) {
  const auto one_of = [&](std::initializer_list<int64_t> values) { return values.begin()[random() % values.size()]; };
  ConvolutionShape shape{.batch = one_of({1, 2, 3, 8, 16, 32, 33, 64}),
                         .channels = one_of({1, 3, 16, 64, 256}),
                         .filters = one_of({16, 64, 256}),
                         .kernel_height = one_of({1, 3, 7}),
                         .stride = one_of({1, 2}),
                         .padding = one_of({0, 1}),
                         .image = one_of({49, 196, 784, 50176})};
  shape.kernel = shape.kernel_height * shape.kernel_height;
  shape.out_image = shape.image / shape.stride / shape.stride;
  return shape;
}

TEST(ConvolutionCases, BoxesFindWhatASearchInOrderFinds) {
  std::mt19937 random(7);
  for (const int count : {1, 5, 12, 13, 40, 700}) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      const ConvolutionShape s = random_shape(random);
      text += fmt::format("w\t-\t0\t0\t0\t1\t{}\t{}\t{}\t{}\t{}\t{}\t1\t{}\t{}\t{}\t7\t{}\n", s.batch, s.channels,
                          s.filters, s.kernel, s.kernel_height, s.stride, s.padding, s.image, s.out_image,
                          1'000'000 + random() % 1'000'000);
    }
    const auto cases = ConvolutionCases::parse(text, "test");
    ASSERT_TRUE(cases.ok());
    constexpr auto kPass = ConvolutionPass::weight_gradient;
    std::vector<std::pair<ConvolutionShape, std::optional<int64_t>>> asked;
    for (int i = 0; i < 400; ++i) {
      const ConvolutionShape shape = random_shape(random);
      asked.emplace_back(shape, cases->bytes(kPass, shape, ConvolutionCases::Search::in_order));
      ASSERT_TRUE(asked.back().second.has_value());
      ASSERT_EQ(cases->bytes(kPass, shape, ConvolutionCases::Search::boxes), asked.back().second) << count;
    }
    // The same with what is kept, before and after a kind counts as asked often.
    for (int round = 0; round < 2; ++round) {
      for (const auto& [shape, bytes] : asked) ASSERT_EQ(cases->bytes(kPass, shape), bytes) << count;
    }
  }
}

TEST(ConvolutionCases, NamesTheLineThatIsWrong) {
  for (const std::string& wrong :
       {std::string("x\t-\t1\n"), line("x", "-", 8, 1), line("f", "-", 8, -1), line("f", "-", 8, 1).substr(0, 20),
        line("f", "", 8, 1), line("f", "-", 8, 1) + "f\n"}) {
    const auto cases = ConvolutionCases::parse("# header\n" + wrong, "name.tsv");
    ASSERT_FALSE(cases.ok()) << wrong;
    EXPECT_NE(cases.error().where.find("name.tsv:"), std::string::npos);
  }
  EXPECT_FALSE(ConvolutionCases::load("/nowhere.tsv").ok());
}

TEST(ConvolutionCases, HoldsForSenselessShapes) {
  const auto cases = ConvolutionCases::parse(line("f", "-", 8, 5000), "test");
  ASSERT_TRUE(cases.ok());
  const ConvolutionShape nothing{.groups = 0, .batch = 0, .channels = 0, .filters = 0, .kernel = 0, .kernel_height = 0};
  EXPECT_TRUE(cases->bytes(ConvolutionPass::convolution, nothing).has_value());
  ConvolutionShape enormous = shape(int64_t{1} << 50);
  EXPECT_GE(cases->bytes(ConvolutionPass::convolution, enormous).value_or(-1), 0);
}

}  // namespace
}  // namespace forerun
