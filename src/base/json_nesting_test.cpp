#include "base/json_nesting.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

bool whole(std::string_view text, int64_t depth = 0) {
  JsonNesting nesting(depth);
  nesting.read(text);
  return nesting.closed();
}

TEST(JsonNesting, TellsWholeTextFromCutText) {
  const std::string_view text = R"({"a": [1, {"b": "]}\"}"}], "c": {}})";
  EXPECT_TRUE(whole(text));
  for (size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(whole(text.substr(0, size))) << size;
  EXPECT_TRUE(whole(R"(, "x": 1})", 1));
  EXPECT_FALSE(whole(R"(, "x": 1)", 1));
}

TEST(JsonNesting, PiecesGiveTheSame) {
  const std::string_view text = R"({"a": "\\\"", "b": [{}]} {)";
  JsonNesting nesting;
  for (const char& c : text) nesting.read(std::string_view(&c, 1));
  EXPECT_FALSE(nesting.closed());
  EXPECT_TRUE(nesting.goes_on());
}

}  // namespace
}  // namespace forerun
