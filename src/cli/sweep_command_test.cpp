// `forerun sweep` as a user meets it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

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

TEST(SweepCommand, PrintsRatesBelowOneAndTokens) {
  const Outcome slow = forerun_outcome("sweep gpt2_xl --gpu t4 --over batch=1,2");
  EXPECT_EQ(slow.code, 0) << slow.out;
  EXPECT_TRUE(says(slow, "tokens/s")) << slow.out;
  std::istringstream lines(slow.out);
  std::string heading, row;
  std::getline(lines, heading);
  std::getline(lines, row);
  // Right-aligned below its heading.
  const size_t end = heading.find("samples/s") + 9;
  const size_t begin = row.rfind(' ', end - 1) + 1;
  EXPECT_GT(std::stod(row.substr(begin, end - begin)), 0) << row;
  EXPECT_NE(row.substr(begin, end - begin).find('.'), std::string::npos) << row;
}

TEST(SweepCommand, NamesEachColumnOnce) {
  const Outcome csv = forerun_outcome(
      "sweep resnet18 --over batch=1,2 --over gpu=t4,l4 --over precision=fp32 --over optimizer=sgd:impl=fused --csv");
  EXPECT_EQ(csv.code, 0) << csv.out;
  std::istringstream lines(csv.out);
  std::string line;
  std::getline(lines, line);
  std::istringstream names(line);
  std::set<std::string> seen;
  size_t columns = 0;
  for (std::string name; std::getline(names, name, ','); ++columns) EXPECT_TRUE(seen.insert(name).second) << name;
  EXPECT_TRUE(seen.contains("batch") && seen.contains("gpu") && seen.contains("iter_ms"));
  size_t rows = 0;
  for (; std::getline(lines, line); ++rows) {
    EXPECT_EQ(static_cast<size_t>(std::count(line.begin(), line.end(), ',')) + 1, columns) << line;
  }
  EXPECT_EQ(rows, 4U);
}

}  // namespace
}  // namespace forerun::cli
