#include "base/base64.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(Base64, TextsOfTheStandard) {
  for (const auto& [bytes, text] :
       {std::pair("", ""), std::pair("f", "Zg=="), std::pair("fo", "Zm8="), std::pair("foo", "Zm9v"),
        std::pair("foob", "Zm9vYg=="), std::pair("foobar", "Zm9vYmFy")}) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, AnyBytesComeBack) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
    bytes += static_cast<char>(i * 37);
  }
}

TEST(Base64, WhatIsNoneIsNotRead) {
  for (const char* text : {"Zg=", "Zg", "Z===", "====", "Zm9v!!!!", "Zg==Zg==", "Zm 9"})
    EXPECT_FALSE(from_base64(text)) << text;
}

}  // namespace
}  // namespace forerun
