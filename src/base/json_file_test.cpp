#include "base/json_file.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(JsonFileTest, ReadsFields) {
  auto file = JsonObject::parse(R"({"a": 2, "b": {"c": 0.5}, "t": "x", "l": ["p", "q"], "o": [{"n": 1}]})", "f");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->integer("a"), 2);
  EXPECT_DOUBLE_EQ(file->object("b").number("c"), 0.5);
  EXPECT_EQ(file->text("t"), "x");
  EXPECT_EQ(file->texts("l"), (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(file->texts("absent"), std::vector<std::string>{});
  EXPECT_EQ(file->objects("o").at(0).integer("n"), 1);
  EXPECT_DOUBLE_EQ(file->number_or("absent", 7), 7);
  EXPECT_TRUE(file->status().ok());
}

TEST(JsonFileTest, ReadsTextsThatMayBeEmptyAndFlags) {
  auto file = JsonObject::parse(R"({"e": "", "t": true, "f": false})", "f");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->any_text("e"), "");
  EXPECT_TRUE(file->flag("t"));
  EXPECT_FALSE(file->flag("f"));
  EXPECT_TRUE(file->status().ok());
  for (const char* field : {"t", "absent"}) {
    auto again = JsonObject::parse(R"({"t": true})", "f");
    again->any_text(field);
    EXPECT_FALSE(again->status().ok()) << field;
  }
  for (const char* field : {"e", "absent"}) {
    auto again = JsonObject::parse(R"({"e": ""})", "f");
    again->flag(field);
    EXPECT_FALSE(again->status().ok()) << field;
  }
}

TEST(JsonFileTest, TheFirstFaultIsKeptWithItsPlace) {
  auto file = JsonObject::parse(R"({"a": -1, "b": {"c": "x"}, "n": 1.5})", "f.json");
  ASSERT_TRUE(file.ok());
  JsonObject inner = file->object("b");
  inner.number("c");
  file->number("a");
  ASSERT_FALSE(file->status().ok());
  EXPECT_EQ(file->status().error().where, "f.json, b.c");
}

TEST(JsonFileTest, WrongKindsAreFaults) {
  const auto fails = [](auto read) {
    auto file = JsonObject::parse(R"({"a": -1, "z": 0, "n": 1.5, "s": "", "l": [1], "o": [1]})", "f");
    read(*file);
    return !file->status().ok();
  };
  EXPECT_TRUE(fails([](JsonObject& f) { f.number("a", Sign::not_negative); }));
  EXPECT_TRUE(fails([](JsonObject& f) { f.number("z"); }));
  EXPECT_FALSE(fails([](JsonObject& f) { f.number("z", Sign::not_negative); }));
  EXPECT_TRUE(fails([](JsonObject& f) { f.integer("n"); }));
  EXPECT_TRUE(fails([](JsonObject& f) { f.text("s"); }));
  EXPECT_TRUE(fails([](JsonObject& f) { f.texts("l"); }));
  EXPECT_TRUE(fails([](JsonObject& f) { f.texts("a"); }));
  EXPECT_TRUE(fails([](JsonObject& f) { f.objects("o"); }));
  EXPECT_TRUE(fails([](JsonObject& f) { f.object("a"); }));
  EXPECT_TRUE(fails([](JsonObject& f) { f.number("absent"); }));
}

TEST(JsonFileTest, BrokenText) {
  EXPECT_FALSE(JsonObject::parse("", "f").ok());
  EXPECT_FALSE(JsonObject::parse("{\"a\": NaN}", "f").ok());
  EXPECT_FALSE(JsonObject::parse("[]", "f").ok());
  EXPECT_FALSE(JsonObject::read("/no/such/file.json").ok());
}

TEST(JsonFileTest, RefusesWhatIsNoSmallFile) {
  const auto endless = JsonObject::read("/dev/zero");
  ASSERT_FALSE(endless.ok());
  EXPECT_EQ(endless.error().where, "/dev/zero");
  EXPECT_NE(endless.error().what.find("more than 16 MiB"), std::string::npos);
  const auto folder = JsonObject::read(::testing::TempDir());
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(folder.error().what.find("cannot be"), std::string::npos) << folder.error().message();
}

}  // namespace
}  // namespace forerun
