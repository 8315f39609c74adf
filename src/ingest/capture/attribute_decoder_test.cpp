#include "ingest/capture/attribute_decoder.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(AttributeDecoder, TypesValues) {
  AttributeDecoder decoder;
  const auto decoded = decoder.decode(
      R"({"i": -3, "d": 0.5, "w": 2.0, "b": true, "s": "x\"y", "n": null, "li": [1, -2], "ld": [1, 0.5], "lb": [true, false],
          "e": [], "nested": [[1], [2]], "o": {"k": 1}})");
  ASSERT_TRUE(decoded.ok()) << decoded.error().message();
  const Attributes& a = *decoded;
  EXPECT_EQ(a.get_int("i", 0), -3);
  EXPECT_EQ(a.get_double("d", 0), 0.5);
  EXPECT_TRUE(std::holds_alternative<double>(*a.find("w")));
  EXPECT_TRUE(a.get_bool("b", false));
  EXPECT_EQ(a.get_string("s"), "x\"y");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(*a.find("n")));
  EXPECT_EQ(a.get_ints("li"), (Shape{1, -2}));
  EXPECT_EQ(std::get<std::vector<double>>(*a.find("ld")), (std::vector<double>{1, 0.5}));
  EXPECT_EQ(std::get<std::vector<bool>>(*a.find("lb")), (std::vector<bool>{true, false}));
  EXPECT_EQ(a.get_ints("e", {7}), Shape{});
  EXPECT_EQ(std::get<JsonText>(*a.find("nested")).text, "[[1],[2]]");
  EXPECT_EQ(std::get<JsonText>(*a.find("o")).text, R"({"k":1})");
}

TEST(AttributeDecoder, KeepsInfinityAsTextAndRefusesNan) {
  AttributeDecoder decoder;
  const auto infinite =
      decoder.decode(R"({"value": -Infinity, "name": "Infinity \" -Infinity", "list": [Infinity, 1]})");
  ASSERT_TRUE(infinite.ok()) << infinite.error().message();
  EXPECT_EQ(infinite->get_string("value"), "-Infinity");
  EXPECT_EQ(infinite->get_string("name"), "Infinity \" -Infinity");

  const auto nan = decoder.decode(R"({"value": NaN})");
  ASSERT_FALSE(nan.ok());
  EXPECT_NE(nan.error().what.find("holds NaN"), std::string::npos);
}

TEST(AttributeDecoder, RefusesWhatIsNoObject) {
  AttributeDecoder decoder;
  for (const char* text : {"", "[1]", "7", "{", R"({"a": })", R"({"a": 1e999})", R"({"a": [1, 2})"}) {
    EXPECT_FALSE(decoder.decode(text).ok()) << text;
  }
  EXPECT_TRUE(decoder.decode("{}").ok()) << "and goes on after an error";
}

}  // namespace
}  // namespace forerun
