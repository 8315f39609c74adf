#include "derive/precision_support.h"

#include <gtest/gtest.h>

#include "base/data_dir.h"
#include "device/catalogue.h"

namespace forerun::derive {
namespace {

TEST(PrecisionSupport, FollowsTheUnitsOfTheGpu) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder.ok()) << folder.error().message();
  const auto catalogue = load_devices(*folder / "devices");
  ASSERT_TRUE(catalogue.ok()) << catalogue.error().message();
  for (const char* name : {"v100", "t4", "rtx 2080 ti", "p100", "p4"}) {
    const auto device = catalogue->find(name);
    ASSERT_TRUE(device.ok()) << name;
    const Status amp = check_precision(Precision::amp_bf16, *device);
    ASSERT_FALSE(amp.ok()) << name;
    EXPECT_NE(amp.error().message().find(device->name), std::string::npos) << amp.error().message();
    const bool float16 = device->peak.fp16_tensor > 0;
    EXPECT_EQ(amp.error().message().find("take amp_fp16") != std::string::npos, float16) << amp.error().message();
    EXPECT_EQ(check_precision(Precision::amp_fp16, *device).ok(), float16) << name;
    EXPECT_FALSE(check_precision(Precision::bf16, *device).ok()) << name;
    EXPECT_TRUE(check_precision(Precision::fp32, *device).ok());
    EXPECT_TRUE(check_precision(Precision::tf32, *device).ok());
    EXPECT_EQ(precision_on(Precision::tf32, *device), Precision::fp32) << name;
    EXPECT_NE(precision_caveat(Precision::tf32, *device).find("no TF32 units"), std::string::npos);
    EXPECT_EQ(precision_caveat(Precision::fp32, *device), "");
  }
  for (const char* name : {"a100", "h100", "h200", "l4", "rtx 3090", "rtx 4090", "mi300x"}) {
    const auto device = catalogue->find(name);
    ASSERT_TRUE(device.ok()) << name;
    for (const Precision precision :
         {Precision::fp32, Precision::tf32, Precision::amp_bf16, Precision::amp_fp16, Precision::bf16}) {
      EXPECT_TRUE(check_precision(precision, *device).ok()) << name;
      EXPECT_EQ(precision_on(precision, *device), precision) << name;
      EXPECT_EQ(precision_caveat(precision, *device), "") << name;
    }
  }
}

}  // namespace
}  // namespace forerun::derive
