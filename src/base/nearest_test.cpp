#include "base/nearest.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(EditDistance, CountsSteps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("resnet", "renset"), 1) << "two neighbours swapped are one step";
}

TEST(EditDistance, IgnoresCaseAndSeparators) {
  EXPECT_EQ(edit_distance("ResNet-50", "resnet50"), 0);
  EXPECT_EQ(edit_distance("mobilenet.v2", "mobilenet_v2"), 0);
}

TEST(EditDistance, LongWordsAreCut) { EXPECT_EQ(edit_distance(std::string(1'000'000, 'a'), ""), 64); }

TEST(Nearest, ClosestFirst) {
  const std::vector<std::string> known = {"vgg16", "resnet18", "resnet50", "alexnet", "resnet50"};
  EXPECT_EQ(nearest("restnet50", known).front(), "resnet50");
  const std::vector<std::string> all = nearest("resnet5", known, 10);
  EXPECT_EQ(std::count(all.begin(), all.end(), "resnet50"), 1) << "each name once";
  EXPECT_EQ(std::count(all.begin(), all.end(), "vgg16"), 0) << "far names stay out";
}

TEST(Nearest, BeginningsCount) {
  const std::vector<std::string> known = {"bert", "efficientnet_b0"};
  EXPECT_EQ(nearest("efficient", known, 1), std::vector<std::string>{"efficientnet_b0"});
}

TEST(Nearest, AlwaysOneWhereThereAreCandidates) {
  EXPECT_EQ(nearest("zzzzzzzz", {"batch"}).size(), 1U);
  EXPECT_TRUE(nearest("zzzzzzzz", {}).empty());
}

TEST(DidYouMean, Reads) {
  EXPECT_EQ(did_you_mean("bach", {"batch"}), "did you mean batch?");
  EXPECT_EQ(did_you_mean("vgg", {"vgg11", "vgg13"}), "did you mean vgg11 or vgg13?");
  EXPECT_EQ(did_you_mean("vgg", {}), "");
}

}  // namespace
}  // namespace forerun
