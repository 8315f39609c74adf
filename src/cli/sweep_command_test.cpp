// `forerun sweep` as a user meets it.
#include <gtest/gtest.h>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

bool says(const Outcome& outcome, const char* text) { return outcome.out.find(text) != std::string::npos; }

TEST(SweepCommand, NamesTheFastestThatFits) {
  const Outcome table = forerun_outcome("sweep resnet18 --over batch=1,8 --over channels_last=true,false");
  EXPECT_EQ(table.code, 0) << table.out;
  EXPECT_TRUE(says(table, "Fastest that fits: batch=8 channels_last=")) << table.out;
}

TEST(SweepCommand, AnswersWrongValuesWithWhatToDo) {
  const Outcome layout = forerun_outcome("sweep resnet18 --over channels_last=yes,no");
  EXPECT_EQ(layout.code, 1);
  EXPECT_TRUE(says(layout, "give true or false")) << layout.out;
  const Outcome parameter = forerun_outcome("sweep resnet18 --over imag=3,4");
  EXPECT_EQ(parameter.code, 1);
  EXPECT_TRUE(says(parameter, "None of them could be built: family resnet has no parameter 'imag'")) << parameter.out;
  EXPECT_EQ(forerun_outcome("sweep resnet18").code, 2);
}

TEST(SweepCommand, ModelsCanBeWhatItGoesThrough) {
  const Outcome two = forerun_outcome("sweep --over model=resnet18,mobilenet_v2 --set batch=4 --csv");
  EXPECT_EQ(two.code, 0) << two.out;
  EXPECT_TRUE(says(two, "resnet18,") && says(two, "mobilenet_v2,")) << two.out;
  const Outcome none = forerun_outcome("sweep --over batch=4");
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(says(none, "--over model=A,B")) << none.out;
}

TEST(SweepCommand, WhatDoesNotFitIsSaid) {
  const Outcome none = forerun_outcome("sweep llama2_7b --gpu t4 --over batch=1");
  EXPECT_EQ(none.code, 0) << none.out;
  EXPECT_TRUE(says(none, "does not fit")) << none.out;
  EXPECT_TRUE(says(none, "None of them fits.")) << none.out;
}

}  // namespace
}  // namespace forerun::cli
