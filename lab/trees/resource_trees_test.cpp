// Trees that correct a first guess, folds by family, and the errors that predictors are judged by.
#include "lab/trees/resource_trees.h"

#include <gtest/gtest.h>

#include <set>

#include "lab/trees/boosting.h"

namespace forerun::learn {
namespace {

// Guesses that are half of what was measured where the first column is 0, and twice that where it is 1.
ResourceData guessed_workloads() {
  ResourceData data;
  for (int i = 0; i < 120; ++i) {
    ResourceWorkload workload;
    workload.family = "family" + std::to_string(i % 8);
    workload.setting = i < 100 ? "P1w2-10G" : "P1w2-1G";
    workload.columns = {static_cast<float>(i % 2), static_cast<float>(i % 7)};
    for (size_t m = 0; m < kResourceMetrics; ++m) {
      workload.measured[m] = 10.0 + i + static_cast<double>(m);
      workload.simulated[m] = workload.measured[m] * (i % 2 == 0 ? 0.5 : 2);
      workload.formulas[m] = workload.measured[m];
    }
    data.workloads.push_back(workload);
  }
  return data;
}

TEST(ResourceTrees, CorrectTheGuess) {
  if (!can_boost()) GTEST_SKIP() << "this build cannot grow forests";
  const ResourceData data = guessed_workloads();
  const Selection all = select_workloads(data, "P1w2-10G", Split::train);
  ASSERT_EQ(all.size(), 100U);
  ResourceTrees trees(TreeBasis::simulation);
  ASSERT_TRUE(trees.train(data, all, 1).ok());
  EXPECT_LT(mean_of(resource_errors(data, all, trees.predict(data, all))), 0.1);  // the guess itself: 75 %
}

TEST(ResourceTrees, SayWhereThereIsNothingToLearnFrom) {
  const ResourceData data = guessed_workloads();
  EXPECT_FALSE(ResourceTrees(TreeBasis::formulas).train(data, {}, 1).ok());
}

TEST(ResourceFold, SetsWholeFamiliesAside) {
  const ResourceData data = guessed_workloads();
  const Selection all = select_workloads(data, "P1w2-10G", Split::train);
  const ResourceFold fold = resource_fold(data, all, 1);
  EXPECT_EQ(fold.training.size() + fold.validation.size(), all.size());
  EXPECT_GE(fold.validation.size(), 10U);
  EXPECT_LE(fold.validation.size(), 40U);
  std::set<std::string> aside;
  for (const uint32_t i : fold.validation) aside.insert(data.workloads[i].family);
  for (const uint32_t i : fold.training) EXPECT_EQ(aside.count(data.workloads[i].family), 0U);
  EXPECT_NE(fold.validation, resource_fold(data, all, 2).validation);
}

TEST(ResourceErrors, AreRelativeToWhatWasMeasured) {
  const ResourceData data = guessed_workloads();
  ResourceMetrics doubled = data.workloads[0].measured;
  for (double& metric : doubled) metric *= 2;
  const ResourceMetrics errors = resource_errors(data, {0, 1}, {doubled, data.workloads[1].measured});
  for (const double error : errors) EXPECT_DOUBLE_EQ(error, 0.5);
}

}  // namespace
}  // namespace forerun::learn
