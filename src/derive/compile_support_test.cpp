#include "derive/compile_support.h"

#include <gtest/gtest.h>

namespace forerun::derive {
namespace {

Device gpu(const char* vendor, int capability) {
  Device device;
  device.name = "X";
  device.vendor = vendor;
  device.compute_capability = capability;
  return device;
}

TEST(CompileSupport, TritonTakesNvidiaFromVoltaOn) {
  EXPECT_FALSE(check_compiler(gpu("NVIDIA", 60)).ok());
  EXPECT_FALSE(check_compiler(gpu("NVIDIA", 61)).ok());
  EXPECT_TRUE(check_compiler(gpu("NVIDIA", 70)).ok());
  EXPECT_TRUE(check_compiler(gpu("NVIDIA", 0)).ok()) << "not known";
  EXPECT_TRUE(check_compiler(gpu("AMD", 0)).ok());
}

TEST(CompileSupport, FlashKernelsTakeNoMaskOfATracedModel) {
  TrainingSetup setup;
  InputSpec input;
  input.kind = InputKind::tokens;
  input.flavour = "hf";
  setup.attention = Attention::flash;
  const Device device = gpu("NVIDIA", 90);
  EXPECT_TRUE(check_compile(setup, input, device).ok()) << "eager";
  setup.compile = CompileMode::standard;
  EXPECT_FALSE(check_compile(setup, input, device).ok());
  setup.attention = Attention::sdpa;
  EXPECT_TRUE(check_compile(setup, input, device).ok());
  setup.attention = Attention::flash;
  input.flavour.clear();
  EXPECT_TRUE(check_compile(setup, input, device).ok());
}

}  // namespace
}  // namespace forerun::derive
