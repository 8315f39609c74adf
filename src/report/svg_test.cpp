#include "report/svg.h"

#include <gtest/gtest.h>

namespace forerun::svg {
namespace {

TEST(Svg, MarkupInNamesIsText) {
  EXPECT_EQ(escaped("<script>a & 'b'</script>\""), "&lt;script&gt;a &amp; &apos;b&apos;&lt;/script&gt;&quot;");
  Picture picture(100, 50);
  picture.text(1, 2, "<script>");
  picture.heading(0, "a&b", "c<d");
  picture.frame({.left = 1, .top = 1, .width = 9, .height = 9}, "e<f");
  picture.tick_left({}, 0, "g<h");
  picture.tick_below({}, 0, "i<j");
  picture.legend_line({1, 2}, {}, "k<l");
  picture.dot({1, 2}, kBlue, "m<n");
  const std::string drawn = picture.document();
  for (const char* name : {"&lt;script&gt;", "a&amp;b", "c&lt;d", "e&lt;f", "g&lt;h", "i&lt;j", "k&lt;l", "m&lt;n"}) {
    EXPECT_NE(drawn.find(name), std::string::npos) << name;
  }
  EXPECT_EQ(drawn.find("<script>"), std::string::npos);
}

// XML has no control characters and no broken UTF-8, whatever a job is called.
TEST(Svg, BytesThatAreNoTextAreReplaced) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(escaped(std::string("a\x01\0b\x1B", 5)), "ab");
  EXPECT_EQ(escaped("\xC3\xA9\xE2\x82\xAC"), "\xC3\xA9\xE2\x82\xAC");
  EXPECT_EQ(escaped("\xC3"), replaced);
  EXPECT_EQ(escaped("\xFFx"), replaced + "x");
  EXPECT_EQ(escaped("\xC0\xAF"), replaced + replaced);                 // an overlong '/'
  EXPECT_EQ(escaped("\xED\xA0\x80"), replaced + replaced + replaced);  // half of a surrogate pair
}

TEST(Svg, LongNamesAreCutBetweenCharacters) {
  EXPECT_EQ(shortened("abcd", 4), "abcd");
  EXPECT_EQ(shortened("abcde", 4), "abc~");
  EXPECT_EQ(shortened("\xC3\xA9\xC3\xA9\xC3\xA9", 2), "\xC3\xA9~");
  EXPECT_EQ(shortened("", 4), "");
}

TEST(Svg, StepsFinerThanThePictureAreDrawnOnce) {
  svg::Picture picture(100, 100);
  picture.curve({{0, 0}, {0.01, 0}, {0.02, 0}, {5, 0}, {5, 3}, {5, 9}, {5, 4}, {8, 4}}, {});
  // The way back from 9 to 4 stays: it was drawn.
  EXPECT_NE(picture.document().find("points=\"0.0,0.0 5.0,0.0 5.0,9.0 5.0,4.0 8.0,4.0\""), std::string::npos)
      << picture.document();
}

TEST(Svg, TicksAreRoundAndEnough) {
  EXPECT_EQ(round_ticks(10), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(round_ticks(54), (std::vector<double>{0, 10, 20, 30, 40, 50}));
  for (const double most : {0.003, 0.9, 1.0, 7.0, 19.0, 21.0, 99.0, 1e9}) {
    const std::vector<double> ticks = round_ticks(most);
    EXPECT_GE(ticks.size(), 5U) << most;
    EXPECT_LE(ticks.size(), 11U) << most;
    EXPECT_LE(ticks.back(), most * (1 + 1e-9));
  }
  EXPECT_EQ(round_ticks(0), std::vector<double>{0});
}

TEST(Svg, NoTwoOfManySeriesLookAlike) {
  for (size_t i = 0; i < 4 * kColours; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const Line a = line_of(i), b = line_of(j);
      EXPECT_TRUE(std::string_view(a.colour) != b.colour || std::string_view(a.dash) != b.dash) << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace forerun::svg
