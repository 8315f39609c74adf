// The cuts that Inductor of PyTorch 2.11 made on an H200, read off its kernels (data/compile).
#include "compile/split_rule.h"

#include <gtest/gtest.h>

namespace forerun::compile {
namespace {

TEST(SplitRule, CutsAsInductorDid) {
  EXPECT_EQ(split_of({.results = 64, .reduced = 200704, .inner = false}), 1024);  // ResNet-50's norms, batch 64
  EXPECT_EQ(split_of({.results = 256, .reduced = 200704, .inner = false}), 512);
  EXPECT_EQ(split_of({.results = 128, .reduced = 200704, .inner = false}), 1024);
  EXPECT_EQ(split_of({.results = 128, .reduced = 50176, .inner = false}), 392);
  EXPECT_EQ(split_of({.results = 2048, .reduced = 3136, .inner = false}), 25);
  EXPECT_EQ(split_of({.results = 512, .reduced = 3136, .inner = false}), 25);
  EXPECT_EQ(split_of({.results = 768, .reduced = 26624, .inner = false}), 208);  // ConvMixer's
  EXPECT_EQ(split_of({.results = 1024, .reduced = 4096, .inner = false}), 32);   // gradients of a decoder's norms
  EXPECT_EQ(split_of({.results = 768, .reduced = 6272, .inner = false}), 49);
}

TEST(SplitRule, LeavesWholeWhatKeepsTheGpuBusy) {
  EXPECT_EQ(split_of({.results = 4096, .reduced = 768}), 1);
  EXPECT_EQ(split_of({.results = 768, .reduced = 4096}), 1);
  EXPECT_EQ(split_of({.results = 1, .reduced = 8192}), 1);
  EXPECT_GT(split_of({.results = 1, .reduced = 1 << 24}), 1);
  EXPECT_EQ(split_of({.results = 1000, .reduced = 32, .inner = false}), 1);
  EXPECT_EQ(split_of({.results = 8448, .reduced = 4096, .inner = false}), 1);
}

}  // namespace
}  // namespace forerun::compile
