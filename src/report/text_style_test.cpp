#include "report/text_style.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(TextStyle, BreaksLinesBetweenWords) {
  EXPECT_EQ(wrapped("one two three", "  ", 8), "one two\n  three\n");
  EXPECT_EQ(wrapped("  one two three", "    ", 9), "  one two\n    three\n");
  EXPECT_EQ(wrapped("unbreakable words", "", 5), "unbreakable\nwords\n");
  EXPECT_EQ(wrapped("", "  "), "\n");
}

TEST(TextStyle, ColoursAreForTerminals) {
  EXPECT_EQ(TextStyle{}.colored("fits", TextColor::green), "fits");
  EXPECT_EQ(TextStyle{.terminal = true}.colored("fits", TextColor::green), "\x1b[32mfits\x1b[39m");
}

}  // namespace
}  // namespace forerun
