#include "ingest/capture/op_sample.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "ingest/capture/test_records.h"

namespace forerun {
namespace {

using nlohmann::json;

Result<std::optional<OpSample>> read_one(const json& sample) {
  return OpSampleReader::from_text(sample.dump(), "ops.jsonl").next();
}

TEST(OpSample, IsRead) {
  const auto read = read_one(small_sample());
  ASSERT_TRUE(read.ok()) << read.error().message();
  const OpSample& s = **read;
  EXPECT_EQ(s.id, "3f1c");
  EXPECT_EQ(s.grid, "gemm");
  EXPECT_EQ(s.op, "aten.mm.default");
  EXPECT_EQ(s.attributes.get_int("alpha", 0), 2);
  ASSERT_EQ(s.inputs.size(), 4U);
  EXPECT_EQ(s.inputs[1]->shape, (Shape{8, 4}));
  EXPECT_FALSE(s.inputs[1]->strides);
  EXPECT_EQ(*s.inputs[2]->strides, (Shape{1, 4}));
  EXPECT_FALSE(s.inputs[3]);
  EXPECT_EQ(s.dtype(), DType::bfloat16) << "the index does not compute";
  EXPECT_EQ(s.precision, Precision::tf32);
  EXPECT_EQ(s.us, 4.25);
  EXPECT_EQ(s.kernels.size(), 2U);
  EXPECT_EQ(s.kernels[1].name, "reduce");
  EXPECT_EQ(s.kernel_count(), 2);
  EXPECT_EQ(s.workspace, Bytes(1024));
}

TEST(OpSample, StandsBesideItsEnvironmentAndRuns) {
  json other = small_sample();
  other["id"] = "second";
  other["status"] = "failed";
  other["error"] = "CUDNN_STATUS_NOT_SUPPORTED";
  other.erase("us");
  const std::string text = small_sample().dump() + "\n" +
                           R"({"schema": "env/1", "gpu": "NVIDIA H200", "cudnn": null})" + "\n\n" +
                           small_record().dump() + "\n" + other.dump() + "\n";
  auto reader = OpSampleReader::from_text(text, "mixed.jsonl");
  EXPECT_EQ((*reader.next())->id, "3f1c");
  EXPECT_EQ(reader.environment().gpu, "");
  const auto second = reader.next();
  ASSERT_TRUE(second.ok()) << second.error().message();
  EXPECT_EQ((*second)->id, "second");
  EXPECT_EQ((*second)->status, RunStatus::failed);
  EXPECT_EQ(reader.environment().gpu, "NVIDIA H200");
  EXPECT_FALSE((*reader.next()).has_value());
}

TEST(OpSample, MayCountKernelsOfOneName) {
  json many = small_sample();
  many["kernels"] = {{"step", 400.0, 64}, {"end", 2.0}};
  const auto read = read_one(many);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ((*read)->kernel_count(), 65);
  many["kernels"][0][2] = 0;
  EXPECT_FALSE(read_one(many).ok());
}

TEST(OpSample, SaysWhatIsWrong) {
  const auto complaint = [](const std::function<void(json&)>& make) {
    json sample = small_sample();
    make(sample);
    const auto read = read_one(sample);
    return read.ok() ? "" : read.error().where + ": " + read.error().what;
  };
  EXPECT_EQ(complaint([](json& s) { s.erase("op"); }), "ops.jsonl, record 1 (3f1c): the sample lacks op");
  EXPECT_EQ(complaint([](json& s) { s.erase("us"); }), "ops.jsonl, record 1 (3f1c): status is ok, but us is missing");
  EXPECT_NE(complaint([](json& s) { s["us"] = 0; }).find("us is 0"), std::string::npos);
  EXPECT_NE(complaint([](json& s) { s["inputs"][1][0] = "float7"; }).find("input 1: its dtype is \"float7\""),
            std::string::npos);
  EXPECT_NE(complaint([](json& s) { s["inputs"][2][2] = {1}; }).find("input 2: has 2 extents, but 1 strides"),
            std::string::npos);
  EXPECT_NE(complaint([](json& s) { s["outputs"][0][1][0] = -8; }).find("output 0: its shape has a negative entry"),
            std::string::npos);
  EXPECT_NE(complaint([](json& s) { s["outputs"][0] = {"float32"}; }).find("is not [dtype, shape, strides]"),
            std::string::npos);
  EXPECT_NE(complaint([](json& s) { s["inputs"][1][1] = {1 << 30, 1 << 30}; }).find("2^46"), std::string::npos);
  EXPECT_NE(complaint([](json& s) { s["kernels"][0] = {"a"}; }).find("kernel 0 is not [name"), std::string::npos);
  EXPECT_NE(complaint([](json& s) { s["workspace"] = -1; }).find("workspace is -1"), std::string::npos);
  EXPECT_NE(complaint([](json& s) { s["status"] = "odd"; }).find("known: ok, oom, failed"), std::string::npos);
  EXPECT_NE(complaint([](json& s) { s["attributes"] = 3; }).find("attributes is not an object"), std::string::npos);
}

}  // namespace
}  // namespace forerun
