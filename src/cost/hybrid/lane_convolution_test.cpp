#include "cost/hybrid/lane_convolution.h"

#include <gtest/gtest.h>

#include "base/data_dir.h"

namespace forerun::hybrid {
namespace {

class LaneConvolution : public testing::Test {
 protected:
  LaneConvolution() {
    const auto folder = data_dir();
    EXPECT_TRUE(folder.ok());
    auto devices = load_devices(*folder / "devices");
    auto scale = load_device_scale(*folder / kDeviceScaleFile);
    EXPECT_TRUE(devices.ok() && scale.ok());
    scale_ = std::move(*scale);
    measured_ = *devices->find("h200");
    v100_ = *devices->find("v100");
    a100_ = *devices->find("a100");
  }

  // A plain 3 x 3 convolution of 32 images of 56 x 56, as its feature row has it.
  [[nodiscard]] static RowWork plain(Model model, int64_t channels, int64_t squares = int64_t{32} * 14 * 14) {
    const int64_t pixels = int64_t{32} * 56 * 56;
    RowWork row{.model = model, .op = "convolution", .unit = Unit::tf32_tensor};
    row.work.cls = OpClass::convolution;
    row.work.tensor_core_eligible = true;
    row.work.window = 9;
    row.work.winograd_squares = squares;
    row.work.gemm_count = 1;
    row.work.gemm_table[0] = model == Model::convolution     ? GemmShape{1, 1, pixels, channels, 9 * channels}
                             : model == Model::data_gradient ? GemmShape{1, 1, pixels, 9 * channels, channels}
                                                             : GemmShape{1, 1, channels, 9 * channels, pixels};
    row.flops = row.work.gemm_table[0].flops();
    row.moved = 4.0 * static_cast<double>(2 * pixels * channels + 9 * channels * channels);
    return row;
  }
  [[nodiscard]] double us(const RowWork& row) const {
    return lane_convolution_us(row, measured_, v100_, scale_).value_or(-1);
  }

  DeviceScale scale_;
  Device measured_, v100_, a100_;
};

TEST_F(LaneConvolution, CountsWhereTheMeasuredGpuHasOtherUnits) {
  const RowWork row = plain(Model::convolution, 64);
  EXPECT_GT(us(row), 0);
  EXPECT_FALSE(lane_convolution_us(row, measured_, measured_, scale_));
  EXPECT_FALSE(lane_convolution_us(row, measured_, a100_, scale_)) << "it has tensor cores for TF32 too";
  RowWork product = row;
  product.model = Model::gemm;
  EXPECT_FALSE(lane_convolution_us(product, measured_, v100_, scale_));
  DeviceScale without = scale_;
  without.lane_kernels.tiles.clear();
  EXPECT_FALSE(lane_convolution_us(row, measured_, v100_, without));
}

TEST_F(LaneConvolution, WinogradIsTakenWhereItIsFaster) {
  for (const Model model : {Model::convolution, Model::data_gradient, Model::weight_gradient}) {
    const double with = us(plain(model, 256));
    const double without = us(plain(model, 256, 0));
    EXPECT_LT(with, 0.8 * without) << name_of(model);
    EXPECT_GT(with, 0.2 * without) << name_of(model) << ": it saves three of four multiplications, no more";
    EXPECT_LE(us(plain(model, 8)), us(plain(model, 8, 0))) << name_of(model) << ": else the plain one is taken";
  }
}

TEST_F(LaneConvolution, IsNoFasterThanItsBytesAndMultiplications) {
  for (const int64_t channels : {1, 3, 8, 64, 1024}) {
    const RowWork row = plain(Model::convolution, channels);
    EXPECT_GT(us(row), 1e6 * row.moved / v100_.memory_bandwidth) << channels;
    EXPECT_GT(us(row), 1e6 * row.flops / 4 / v100_.peak.fp32) << channels;
  }
}

TEST_F(LaneConvolution, BothFormsOfAGradientAreOneConvolution) {
  EXPECT_NEAR(us(plain(Model::data_gradient, 128, 0)) / us(plain(Model::convolution, 128, 0)), 1, 1e-9);
}

}  // namespace
}  // namespace forerun::hybrid
