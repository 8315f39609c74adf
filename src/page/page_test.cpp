#include "page/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "page/page_template.h"

namespace forerun::page {
namespace {

// What the block of data in a page reads back to.
nlohmann::json data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t from = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

PageContent content_with(const std::string& answers) {
  return {.verb = "predict",
          .command = "forerun predict resnet50",
          .answers = answers,
          .series = {{"memory", R"({"peak":3})"}},
          .made = "2026-11-18T04:20:00Z",
          .version = "0.1.0"};
}

TEST(Page, HasTheAnswerAndWhatItIsOf) {
  const nlohmann::json data = data_of(report_page(content_with(R"({"schema":"forerun.predict/1","iter_ms":1.5})")));
  EXPECT_EQ(data["verb"], "predict");
  EXPECT_EQ(data["command"], "forerun predict resnet50");
  EXPECT_EQ(data["made"], "2026-11-18T04:20:00Z");
  EXPECT_EQ(data["version"], "0.1.0");
  EXPECT_EQ(data["answers"][0]["iter_ms"], 1.5);
  EXPECT_EQ(data["series"]["memory"]["peak"], 3);
}

TEST(Page, AnswersOfManyLinesBecomeAList) {
  EXPECT_EQ(data_of(report_page(content_with("{\"a\":1}\n{\"a\":2}\n")))["answers"].size(), 2U);
  EXPECT_EQ(data_of(report_page(content_with("[{\"a\":1},{\"a\":2},{\"a\":3}]\n")))["answers"].size(), 3U);
  EXPECT_EQ(data_of(report_page(content_with("{\n  \"a\": {\n    \"b\": 1\n  }\n}\n")))["answers"].size(), 1U);
  EXPECT_EQ(data_of(report_page(content_with("")))["answers"].size(), 0U);
}

TEST(Page, NamesCannotBecomeMarkup) {
  const std::string name = "</script><img src=x onerror=alert(1)><!--\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xA6";
  PageContent content = content_with(nlohmann::json{{"module", name}}.dump());
  content.command = "forerun predict '" + name + "'";
  const std::string page = report_page(content);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("\xE2\x80\xA8", page.find("id=\"data\"")), std::string::npos);
  EXPECT_NE(page.find("\xE2\x80\xA6"), std::string::npos) << "other letters of that block stay";
  EXPECT_EQ(data_of(page)["answers"][0]["module"], name);
  EXPECT_EQ(data_of(page)["command"], content.command);
}

TEST(Page, AFileConnectsToNothingAndAServersPageToItself) {
  const std::string file = report_page(content_with("{}"));
  EXPECT_NE(file.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(file.find("connect-src 'none'"), std::string::npos);
  const std::string page = server_page({.version = "0.1.0"});
  EXPECT_NE(page.find("connect-src 'self'"), std::string::npos);
  EXPECT_EQ(data_of(page)["api"], "/api/v1");
  EXPECT_NE(server_policy().find("connect-src 'self'"), std::string::npos);
  EXPECT_NE(server_policy().find("frame-ancestors 'none'"), std::string::npos);
  EXPECT_NE(server_policy().find("script-src 'sha256-"), std::string::npos);
  EXPECT_EQ(server_policy().find('"'), std::string::npos);
}

TEST(Page, IsSmallAndAscii) {
  const std::string page = server_page({});
  EXPECT_LT(page.size(), 300'000U);
  EXPECT_TRUE(std::all_of(page.begin(), page.end(), [](char c) { return static_cast<unsigned char>(c) < 128; }));
  EXPECT_EQ(page.find("http:"), page.find("http://www.w3.org/")) << "it names no other address";
}

}  // namespace
}  // namespace forerun::page
