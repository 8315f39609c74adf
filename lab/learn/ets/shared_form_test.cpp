#include "lab/learn/ets/shared_form.h"

#include <gtest/gtest.h>

#include "graph/graph_builder.h"
#include "lab/dataset/record_example.h"

namespace forerun::learn {
namespace {

// A convolution of 16 images, 64 to 128 channels, 8 x 8 to 4 x 4 places, by a record and by a trace.
Example recorded_convolution(DataSet& data) {
  GraphBuilder b;
  const auto tensor = [&](const Shape& shape, int64_t elements) {
    return b.add_tensor(b.add_storage(Bytes(4 * elements)), DType::float32, shape);
  };
  const TensorId x = tensor({16, 64, 8, 8}, 16 * 64 * 64);
  const TensorId w = tensor({128, 64, 3, 3}, 128 * 64 * 9);
  const TensorId y = tensor({16, 128, 4, 4}, 16 * 128 * 16);
  Attributes attributes;
  attributes.set("stride", Shape{2, 2});
  attributes.set("padding", Shape{1, 1});
  attributes.set("dilation", Shape{1, 1});
  attributes.set("groups", int64_t{1});
  attributes.set("transposed", false);
  const std::vector<TensorId> inputs = {x, w};
  const std::vector<TensorId> outputs = {y};
  b.add_op({.name = "aten.convolution.default",
            .phase = Phase::forward,
            .inputs = inputs,
            .outputs = outputs,
            .attributes = &attributes});
  TrainingRun run;
  run.graph = b.finish();
  run.environment.gpu = "T4";
  return example_of(run, data);
}

Example traced_op(DataSet& data, const char* number, Phase phase, std::initializer_list<float> parameters) {
  OpRow row;
  row.name = data.intern_name(number);
  row.phase = phase;
  std::copy(parameters.begin(), parameters.end(), row.hyper.begin());
  Example example;
  example.device = "T4";
  example.ops = {data.intern(row)};
  return example;
}

constexpr std::initializer_list<float> kTracedConvolution = {16, 64, 8, 8, 128, 4, 4, 3, 3, 1, 1, 2, 2, 1, 1, 1, 4};

TEST(SharedForm, ARecordAndATraceTellTheSameOfAConvolution) {
  DataSet data;
  data.add(recorded_convolution(data));
  data.add(traced_op(data, "203", Phase::forward, kTracedConvolution));
  const DataSet shared = in_shared_form(data);
  ASSERT_EQ(shared.examples().size(), 2U);
  EXPECT_EQ(shared.examples()[0].ops, shared.examples()[1].ops);
  EXPECT_EQ(shared.rows().size(), 1U);
  EXPECT_EQ(shared.name_of_row(shared.rows()[0]), "convolution");
}

TEST(SharedForm, BackwardOfATracedProductCountsTwice) {
  DataSet data;
  data.add(traced_op(data, "203", Phase::forward, kTracedConvolution));
  data.add(traced_op(data, "203", Phase::backward, kTracedConvolution));
  const DataSet shared = in_shared_form(data);
  ASSERT_EQ(shared.rows().size(), 2U);
  EXPECT_EQ(shared.rows()[1].amount(Amount::flops), 2 * shared.rows()[0].amount(Amount::flops));
  const auto extents = [&](size_t row) {
    return std::vector<float>(shared.rows()[row].hyper.begin(), shared.rows()[row].hyper.begin() + 3);
  };
  EXPECT_EQ(extents(0), (std::vector<float>{256, 128, 576}));
  EXPECT_EQ(extents(1), (std::vector<float>{256, 576, 128}));
}

TEST(SharedForm, ANumberThatIsNotKnownIsOpaque) {
  DataSet data;
  data.add(traced_op(data, "9999", Phase::forward, {4, 16, 64, 8, 8}));
  const DataSet shared = in_shared_form(data);
  EXPECT_EQ(shared.rows()[0].cls, OpClass::opaque);
  EXPECT_EQ(shared.rows()[0].amount(Amount::bytes_read), 2 * 16 * 64 * 8 * 8 * 4);
}

TEST(SharedForm, ScalesAreThoseOfTheGpu) {
  DataSet data;
  data.add(traced_op(data, "203", Phase::forward, {64, 512, 56, 56, 512, 56, 56, 3, 3, 1, 1, 1, 1, 1, 1, 1, 4}));
  const DataSet shared = in_shared_form(data);
  const KnownDevices devices;
  const std::vector<uint32_t> places = {0};
  const auto time_on = [&](const char* gpu) {
    return shared_scales(shared, shared.examples()[0], places, devices.find(gpu))[0].time_us;
  };
  const double ratio = devices.find("h200").rate(Unit::fp32) / devices.find("T4").rate(Unit::fp32);
  EXPECT_NEAR(time_on("T4") / time_on("h200"), ratio, 0.01 * ratio);
}

}  // namespace
}  // namespace forerun::learn
