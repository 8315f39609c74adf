// No word of a question reaches a file by itself.
#include "serve/words.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "ask/ask.h"
#include "serve/answer_cache.h"
#include "serve/openapi.h"
#include "serve/routes.h"
#include "serve/uploads.h"

namespace forerun::serve {
namespace {

const std::string kId(64, 'a');

Result<Admitted> admitted_words(const char* question, const std::string& body) {
  return admit(*find_question(question), body, [](const std::string& id) { return id == kId; });
}

TEST(Words, PlainQuestionsPassAsTheyAre) {
  const auto passed = admitted_words(
      "predict", R"({"model": "resnet50", "gpu": "h200", "batch": 64, "set": {"image": 384}, "lora": null})");
  ASSERT_TRUE(passed.ok()) << passed.error().message();
  EXPECT_EQ(passed->json, R"({"model":"resnet50","gpu":"h200","batch":64,"set":{"image":384},"lora":null})");
  EXPECT_TRUE(passed->uploads.empty());
}

TEST(Words, UploadsBecomeNamesInTheirFolder) {
  const auto passed =
      admitted_words("predict", R"({"model": "upload:)" + kId + R"(", "machine": "upload:)" + kId + "\"}");
  ASSERT_TRUE(passed.ok()) << passed.error().message();
  EXPECT_EQ(passed->json, R"({"model":")" + kId + R"(","machine":")" + kId + "\"}");
  EXPECT_EQ(passed->uploads, std::vector<std::string>{kId});
  EXPECT_TRUE(admitted_words("trace", R"({"files": ["upload:)" + kId + "\"]}").ok());
  EXPECT_TRUE(admitted_words("predict", R"({"model": "resnet50", "machine": "none"})").ok());
}

// Every word that names a file on the command line, with paths of all kinds.
TEST(Words, PathsAreRefusedWhereverTheyStand) {
  const std::vector<std::string> paths = {"/etc/passwd",
                                          "../x",
                                          "./a.json",
                                          "file:///etc/passwd",
                                          "a.onnx",
                                          "upload:../x",
                                          "upload:" + std::string(64, 'b'),
                                          "upload:" + kId + "/..",
                                          "upload:",
                                          kId,
                                          "/dev/zero",
                                          "C:\\x",
                                          "~/.ssh/id_rsa",
                                          "/proc/self/environ",
                                          "none/.."};
  const std::vector<std::pair<const char*, const char*>> places = {
      {"predict", R"({"model": "%"})"},
      {"predict", R"({"model": "resnet50", "machine": "%"})"},
      {"predict", R"({"model": "resnet50", "prices": "%"})"},
      {"predict", R"({"model": "resnet50", "device_files": "%"})"},
      {"ops", R"({"model": "resnet50", "device_files": ["%"]})"},
      {"fit", R"({"model": "%"})"},
      {"compare", R"({"model": "%"})"},
      {"scale", R"({"model": "resnet50", "efficiency": "%"})"},
      {"scale", R"({"model": "%"})"},
      {"whatif", R"({"model": "%", "all": true})"},
      {"trace", R"({"files": ["%"]})"},
      {"trace", R"({"files": "%"})"},
      {"sweep", R"({"over": {"model": ["resnet50", "%"]}})"},
      {"sweep", R"({"over": {"model": "%"}})"},
      {"sweep", R"({"model": "resnet50", "prices": "%", "over": {"batch": [1]}})"},
      {"schedule", R"({"file": "%"})"},
      {"schedule", R"({"synthetic": "jobs=1", "throughputs": "%"})"},
      {"schedule", R"({"synthetic": "jobs=1", "machine": "%"})"},
      {"schedule", R"({"synthetic": "jobs=1", "policies": ["fifo", "%"]})"},
      {"jobs", R"({"synthetic": "jobs=1", "policies": "%:a=1"})"},
  };
  for (const auto& [question, form] : places) {
    for (const std::string& path : paths) {
      std::string body = form;
      std::string escaped = path;
      if (const size_t slash = escaped.find('\\'); slash != std::string::npos) escaped.insert(slash, "\\");
      body.replace(body.find('%'), 1, escaped);
      EXPECT_FALSE(admitted_words(question, body).ok()) << question << " " << body;
    }
  }
}

TEST(Words, PoliciesThatWouldBeRunAreRefused) {
  for (const char* policy : {"mine.py", "mine.so", "/tmp/mine.py", "mine.py:a=1"}) {
    EXPECT_FALSE(
        admitted_words("schedule", std::string(R"({"synthetic": "jobs=1", "policies": [")") + policy + "\"]}").ok());
  }
  EXPECT_TRUE(
      admitted_words("schedule", R"({"synthetic": "jobs=1", "policies": ["fifo", "sjf", "2d-las:q1=10"]})").ok());
}

TEST(Words, WhatIsUnknownOrHasNoFormIsRefused) {
  for (const char* body :
       {"", "[]", "1", "null", "{", R"({"model": 1})", R"({"model": ["resnet50"]})", R"({"mdel": "resnet50"})",
        R"({"model": "resnet50", "threads": 4})", R"({"model": "resnet50", "memory_limit": "1GiB"})",
        R"({"model": "resnet50", "machine": {"upload": 1}})"}) {
    EXPECT_FALSE(admitted_words("predict", body).ok()) << body;
  }
  EXPECT_FALSE(admitted_words("predict", std::string(100000, '[')).ok());
  EXPECT_NE(admitted_words("predict", R"({"model": "resnet5O"})").error().remedy.find("resnet50"), std::string::npos);
  EXPECT_EQ(find_question("check"), nullptr) << "it writes a file";
  EXPECT_EQ(find_question("judge"), nullptr);
}

// Each allowed word is one that ask/ knows: it answers something else than that there is no such word.
TEST(Words, EveryAllowedWordIsAWordOfItsQuestion) {
  ask::Knowledge knowledge;
  for (const AllowedQuestion& question : allowed_questions()) {
    for (const Word& word : question.words) {
      nlohmann::json body;
      body[word.name] = nlohmann::json::object();  // of no word's kind alone, so that nothing is asked
      body["not_a_word"] = 1;
      const auto answered = ask::answer(question.name, body.dump(), {.knowledge = knowledge});
      ASSERT_FALSE(answered.ok());
      EXPECT_EQ(answered.error().what.find(std::string("no word '") + word.name), std::string::npos)
          << question.name << " " << word.name << ": " << answered.error().message();
    }
  }
}

TEST(OpenApi, IsTheFileInTheDocumentation) {
  std::ifstream file(FORERUN_SOURCE_DIR "/docs/schema/http/openapi.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, openapi_json()) << "GET /api/v1/openapi.json prints the new one";
}

TEST(OpenApi, HasEveryRoute) {
  const auto contract = nlohmann::json::parse(openapi_json());
  EXPECT_EQ(contract["openapi"], "3.1.0");
  for (const Routes::Route& route : Routes::list()) {
    std::string path = route.path, method = route.method;
    for (char& c : method) c = static_cast<char>(std::tolower(c));
    if (path.ends_with("{question}")) path = "/api/v1/predict";
    EXPECT_TRUE(contract["paths"].contains(path) && contract["paths"][path].contains(method)) << method << " " << path;
  }
}

TEST(Routes, AreFoundByMethodAndPath) {
  EXPECT_EQ(Routes::find("POST", {"api", "v1", "predict"}).captured, std::vector<std::string>{"predict"});
  EXPECT_EQ(std::string(Routes::find("POST", {"api", "v1", "jobs"}).route->path), "/api/v1/jobs");
  EXPECT_EQ(std::string(Routes::find("GET", {}).route->path), "/");
  EXPECT_EQ(Routes::find("POST", {"api", "v1", "nothing"}).route, nullptr);
  EXPECT_TRUE(Routes::find("POST", {"api", "v1", "nothing"}).methods.empty());
  EXPECT_EQ(Routes::find("DELETE", {"api", "v1", "predict"}).methods, std::vector<std::string>{"POST"});
}

TEST(AnswerCache, KeepsWhatWasAskedForLastWithinItsBytes) {
  AnswerCache cache(160);
  for (int i = 0; i < 20; ++i) {
    cache.keep(std::to_string(i), std::string(10, static_cast<char>('a' + i)));
    EXPECT_EQ(cache.find("0"), std::string(10, 'a')) << "asked for again and again";
  }
  EXPECT_EQ(cache.find("1"), std::nullopt);
  EXPECT_EQ(cache.find("19"), std::string(10, 't'));
  EXPECT_EQ(cache.find("4"), std::nullopt);
  EXPECT_EQ(cache.find("5"), std::string(10, 'f')) << "16 of them have room, the first among them";
  cache.keep("large", std::string(11, 'x'));
  EXPECT_EQ(cache.find("large"), std::nullopt);
}

TEST(Uploads, NamesAreShownPlain) {
  EXPECT_EQ(shown_name("../../etc/passwd"), "passwd");
  EXPECT_EQ(shown_name("C:\\x\\trace \"1\".json"), "trace _1_.json");
  EXPECT_EQ(shown_name("</script>"), "script_");
  EXPECT_EQ(shown_name(""), "upload");
}

}  // namespace
}  // namespace forerun::serve
