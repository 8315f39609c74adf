#include "lab/calibrate/efficiency_regression.h"

#include <gtest/gtest.h>

#include "lab/calibrate/least_squares.h"
#include "scale/test_cluster.h"

namespace forerun::scale {
namespace {

TEST(LeastSquares, FindsTheMinimum) {
  const Residuals rosenbrock = [](const std::vector<double>& x) {
    return std::vector<double>{10 * (x[1] - x[0] * x[0]), 1 - x[0]};
  };
  const Minimum minimum = least_squares(rosenbrock, {-1.2, 1}, 500);
  EXPECT_NEAR(minimum.unknowns[0], 1, 1e-2);
  EXPECT_NEAR(minimum.unknowns[1], 1, 2e-2);
  EXPECT_TRUE(solve_symmetric({1, 2, 2, 1}, {1, 1}).empty());  // not positive definite
}

// Rows made by the formulas with other constants are explained again.
TEST(EfficiencyRegression, RecoversWhatMadeTheRows) {
  const GpuCluster cluster = test_cluster(8);
  Efficiency truth;
  truth.fused_attention = false;
  truth.host_layer_us = 2000;
  truth.score_bytes = 60;
  std::vector<MegatronRow> rows;
  for (const int64_t hidden : {1024, 2048}) {
    for (const int64_t micro_batch : {1, 4, 8}) {
      for (const int64_t tensor : {1, 2}) {
        MegatronRow row{2, 32, micro_batch, hidden, 16, 12, 1024, tensor, 2 / tensor, 1, {}};
        row.iteration = predicted_time(row, cluster, truth);
        rows.push_back(row);
      }
    }
  }
  Efficiency first;
  first.fused_attention = false;
  const EfficiencyRegression report = calibrate_efficiency(rows, cluster, {}, first);
  EXPECT_LT(report.error, 0.01);
  EXPECT_LT(report.formulas_error, 0.05);
  // Another shape, which nothing was fitted to.
  const MegatronRow other{8, 32, 2, 4096, 32, 24, 2048, 4, 2, 1, {}};
  const double ratio = static_cast<double>(predicted_time(other, cluster, report.efficiency).value) /
                       static_cast<double>(predicted_time(other, cluster, truth).value);
  EXPECT_NEAR(ratio, 1, 0.1);
}

TEST(EfficiencyRegression, LinksFromAllReduces) {
  std::vector<AllReduceRow> rows;
  for (const int64_t n : {2, 4, 8}) {
    for (int64_t mib = 1; mib <= 64; ++mib) {
      const double bytes = static_cast<double>(mib << 20);
      const double us = 30 + 2 * static_cast<double>(n - 1) * 2.5 +
                        2 * static_cast<double>(n - 1) / static_cast<double>(n) * bytes / 210e9 * 1e6;
      rows.push_back({n, Bytes(mib << 20), nanoseconds_from_us(us)});
    }
  }
  const LinkEfficiency link = calibrate_link(rows, 300e9);
  EXPECT_NEAR(link.call_us, 30, 0.1);
  EXPECT_NEAR(link.step_us, 2.5, 0.05);
  EXPECT_NEAR(link.share, 0.7, 0.001);
}

}  // namespace
}  // namespace forerun::scale
