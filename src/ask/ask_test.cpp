// Questions as JSON: answers are those of the C++ seam, words are checked, and nothing that is asked aborts.
#include "ask/ask.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "api/predict.h"
#include "ask/question.h"
#include "report/prediction.h"

namespace forerun::ask {
namespace {

using nlohmann::json;

Knowledge& shared_knowledge() {
  static Knowledge knowledge;
  return knowledge;
}

Result<std::string> asked(const std::string& name, const std::string& question) {
  return answer(name, question, {.knowledge = shared_knowledge()});
}

Error refused(const std::string& name, const std::string& question) {
  const auto answered = asked(name, question);
  EXPECT_FALSE(answered.ok()) << name << " " << question;
  return answered.ok() ? Error{} : answered.error();
}

TEST(Ask, PredictsAsTheSeamDoes) {
  PredictRequest request{.gpu = "a100_80gb"};
  request.model.model = "resnet18";
  request.model.batch = 8;
  request.model.setup = *parse_setup({.precision = "amp_bf16"});
  const auto expected = predict(request, **shared_knowledge().with());
  ASSERT_TRUE(expected.ok());
  const auto answered =
      asked("predict", R"({"model": "resnet18", "gpu": "a100_80gb", "batch": 8, "precision": "amp_bf16"})");
  ASSERT_TRUE(answered.ok()) << answered.error().message();
  EXPECT_EQ(*answered, to_json(expected->prediction));
}

TEST(Ask, AMachineCalibratesTheAnswerAndItsOps) {
  const std::string file = std::string(FORERUN_SOURCE_DIR) + "/tests/corpus/machine_file/h200.json";
  const std::string words = R"({"model": "resnet18", "batch": 8, "gpu": "h200", "machine": ")";
  const auto plain = asked("predict", words + R"(none"})");
  const auto calibrated = asked("predict", words + file + R"("})");
  const auto ops = asked("ops", words + file + R"("})");
  ASSERT_TRUE(plain.ok() && calibrated.ok() && ops.ok());
  EXPECT_NE(json::parse(*plain)["host_ms"], json::parse(*calibrated)["host_ms"]);
  double gpu_us = 0;
  const json columns = json::parse(*ops)["columns"];
  for (const json& time : columns["gpu_us"]) gpu_us += time.get<double>();
  EXPECT_NEAR(gpu_us / 1000, json::parse(*calibrated)["gpu_ms"].get<double>(), 1e-6);
  EXPECT_EQ(*asked("predict", words + file + R"("})"), *calibrated);  // kept, and the same
  EXPECT_EQ(*asked("predict", words + R"(none"})"), *plain);
  EXPECT_NE(refused("predict", words + R"(no/such.json"})").message().find("no/such.json"), std::string::npos);
}

// Whoever answers many questions keeps what they have in common; of one that it is asked first there is nothing yet.
TEST(Ask, WhatWasAskedBeforeChangesNoAnswer) {
  std::mt19937 random(3);
  const auto one_of = [&](const std::vector<std::string>& words) { return words[random() % words.size()]; };
  std::vector<std::pair<std::string, std::string>> answers;  // question, answer
  for (int i = 0; i < 30; ++i) {
    json question = {{"model", one_of({"resnet18", "resnet50", "gpt2"})},
                     {"gpu", one_of({"h200", "a100_80gb", "rtx_3090"})},
                     {"precision", one_of({"tf32", "tf32", "amp_fp16"})},
                     {"batch", 1 + random() % 40}};
    if (random() % 8 == 0) question["optimizer"] = "adamw:impl=fused";
    if (random() % 8 == 0) question["brief"] = true;
    Knowledge fresh;
    const auto first = answer("predict", question.dump(), {.knowledge = fresh});
    ASSERT_TRUE(first.ok()) << first.error().message();
    answers.emplace_back(question.dump(), *first);
  }
  Knowledge used;
  for (int round = 0; round < 4; ++round) {
    std::shuffle(answers.begin(), answers.end(), random);
    for (const auto& [question, expected] : answers) {
      const auto again = answer("predict", question, {.knowledge = used});
      ASSERT_TRUE(again.ok()) << again.error().message();
      ASSERT_EQ(*again, expected) << question << " in round " << round;
    }
  }
}

TEST(Ask, OpsAddUpToThePrediction) {
  const auto prediction = asked("predict", R"({"model": "resnet18", "batch": 8})");
  const auto ops = asked("ops", R"({"model": "resnet18", "batch": 8})");
  ASSERT_TRUE(prediction.ok() && ops.ok());
  const json columns = json::parse(*ops)["columns"];
  double gpu_us = 0;
  for (const json& time : columns["gpu_us"]) gpu_us += time.get<double>();
  EXPECT_EQ(columns["op"].size(), json::parse(*prediction)["ops"].get<size_t>());
  EXPECT_NEAR(gpu_us / 1000, json::parse(*prediction)["gpu_ms"].get<double>(), 1e-6);
}

TEST(Ask, MemoryPeaksWhereThePredictionSays) {
  const auto prediction = asked("predict", R"({"model": "resnet18", "batch": 8})");
  const auto memory = asked("memory", R"({"model": "resnet18", "batch": 8})");
  ASSERT_TRUE(prediction.ok() && memory.ok());
  const json timeline = json::parse(*memory);
  const json& allocated = timeline["columns"]["allocated"];
  int64_t most = 0;
  for (const json& size : allocated) most = std::max(most, size.get<int64_t>());
  EXPECT_EQ(allocated[timeline["peak"].get<size_t>()].get<int64_t>(), most);
  EXPECT_EQ(most, json::parse(*prediction)["peak_allocated"].get<int64_t>());
}

TEST(Ask, SweepsInTheOrderOfItsAxes) {
  const auto answered =
      asked("sweep", R"({"model": "resnet18", "over": {"gpu": ["t4", "h200"], "batch": [4, 8, 100000000]}})");
  ASSERT_TRUE(answered.ok()) << answered.error().message();
  const json sweep = json::parse(*answered);
  EXPECT_EQ(sweep["over"]["batch"], json({"4", "8", "100000000", "4", "8", "100000000"}));
  const auto alone = json::parse(*asked("predict", R"({"model": "resnet18", "gpu": "h200", "batch": 8})"));
  EXPECT_EQ(sweep["columns"]["iteration_ms"][4], alone["iter_ms"]);
  EXPECT_EQ(sweep["columns"]["peak_reserved"][4], alone["peak_reserved"]);
  EXPECT_EQ(sweep["columns"]["cost"][4], json());
}

TEST(Ask, AnswersWhatOtherVerbsAnswer) {
  EXPECT_GT(json::parse(*asked("fit", R"({"model": "resnet18", "gpu": "t4", "brief": true})"))["largest"], 1);
  const auto compared =
      json::parse(*asked("compare", R"({"model": "resnet18", "batch": 4, "gpus": ["t4", "h200"], "samples": "1M",
                            "price": {"t4": 0.5, "h200": 4}, "deadline": "3d"})"));
  EXPECT_EQ(compared["gpus"].size(), 2U);
  EXPECT_TRUE(compared["gpus"][0].contains("run_cost"));
  EXPECT_EQ(json::parse(*asked("whatif", R"({"model": "resnet18", "batch": 4, "apply": "amp"})"))["applied"],
            json({"amp"}));
  EXPECT_EQ(json::parse(*asked("scale", R"({"model": "gpt2_small", "gpus": [8, 16]})"))["steps"].size(), 2U);
  const auto trace =
      json::parse(*asked("trace", R"({"files": [")" FORERUN_SOURCE_DIR R"(/tests/corpus/kineto/small.json"]})"));
  EXPECT_FALSE(trace["kernels"]["name"].empty());
  const std::string jobs = R"({"file": ")" FORERUN_SOURCE_DIR R"(/examples/jobs.csv", "gpus": {"a100": 4, "v100": 8},)"
                           R"("policies": ["fifo", "sjf"]})";
  EXPECT_EQ(json::parse(*asked("schedule", jobs)).size(), 2U);
  EXPECT_EQ(asked("jobs", jobs)->substr(0, 9), "policy,id");
  EXPECT_NE(asked("devices", "{}")->find("h200"), std::string::npos);
  EXPECT_NE(asked("models", "{}")->find("resnet50"), std::string::npos);
}

TEST(Ask, NamesTheWordAtFault) {
  EXPECT_EQ(refused("predict", R"({"model": "resnet18", "batch": "8"})").where, "batch");
  EXPECT_EQ(refused("predict", R"({"model": "resnet18", "batch": 0})").where, "batch");
  EXPECT_EQ(refused("predict", R"({"model": "resnet18", "batch": 1.5})").where, "batch");
  EXPECT_EQ(refused("predict", R"({})").where, "model");
  EXPECT_EQ(refused("predict", R"({"model": ""})").where, "model");
  EXPECT_NE(refused("predict", R"({"model": "resnet18", "bacth": 8})").remedy.find("batch"), std::string::npos);
  EXPECT_NE(refused("predict", R"({"model": "resnet5O"})").remedy.find("resnet50"), std::string::npos);
  EXPECT_EQ(refused("predict", R"({"model": "resnet18", "gpus": 4})").where, "gpus") << "as the word, not --gpus";
  EXPECT_EQ(refused("sweep", R"({"model": "resnet18", "batch": 4, "over": {"batch": [1]}})").where, "over");
  EXPECT_EQ(refused("fit", R"({"model": "resnet18", "batch": 4})").where, "batch");
  EXPECT_NE(refused("predictt", "{}").remedy.find("predict"), std::string::npos);
}

// Words of every kind in every question: what is refused is an Error with something to say.
TEST(Ask, RefusesNonsense) {
  const char* questions[] = {"",
                             "null",
                             "[]",
                             "\"x\"",
                             "{\"model\": {}}",
                             "{\"model\": [\"a\"]}",
                             "{\"model\": \"\\u0000\"}",
                             "{\"model\": \"\xff\xfe\"}",
                             "{\"model\": \"resnet18\", \"batch\": 1e400}",
                             "{\"model\": \"resnet18\", \"batch\": 18446744073709551615}",
                             "{\"model\": \"resnet18\", \"batch\": -9223372036854775808}",
                             "{\"model\": \"resnet18\", \"set\": {\"image\": {}}}",
                             "{\"model\": \"resnet18\", \"set\": {\"\": 1}}",
                             "{\"model\": \"resnet18\", \"set\": [1]}",
                             "{\"model\": \"resnet18\", \"price\": {\"h200\": \"many\"}, \"samples\": 10}",
                             "{\"model\": \"resnet18\", \"samples\": \"x\"}",
                             "{\"model\": \"resnet18\", \"epochs\": 3}",
                             "{\"model\": \"resnet18\", \"zero\": 9}",
                             "{\"model\": \"resnet18\", \"gpu\": 7}",
                             "{\"model\": \"resnet18\", \"memory_limit\": \"huge\"}",
                             "{\"model\": \"resnet18\", \"time_limit\": -1}",
                             "{\"model\": \"/\"}",
                             "{\"model\": \"resnet18\", \"over\": {}}",
                             "{\"model\": \"resnet18\", \"over\": {\"batch\": []}}",
                             "{\"model\": \"resnet18\", \"apply\": [3]}",
                             "{\"file\": \"/\", \"policies\": [\"fifo\"], \"gpus\": {\"a\": -1}}",
                             "{\"file\": \"x\", \"policies\": [\"nonsense\"], \"gpus\": {\"a\": 1}}",
                             "{\"files\": [], \"top\": -1}"};

  for (const std::string& name : forerun::ask::questions()) {
    for (const std::string question : questions) EXPECT_FALSE(refused(name, question).what.empty()) << name << question;
  }
  const std::string deep = "{\"model\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_FALSE(refused("predict", deep).what.empty());
  EXPECT_FALSE(refused("predict", std::string(Question::kLargest + 1, ' ')).what.empty());
}

TEST(Ask, StopsWhenAsked) {
  std::stop_source stop;
  stop.request_stop();
  const auto answered = answer("sweep", R"({"model": "resnet18", "over": {"batch": [1, 2, 3, 4]}})",
                               {.knowledge = shared_knowledge(), .control = {.stop = stop.get_token()}});
  ASSERT_FALSE(answered.ok());
  EXPECT_EQ(answered.error().kind, ErrorKind::stopped);
  const std::string guards = FORERUN_SOURCE_DIR "/tests/corpus/guard_file/good.toml";
  const auto checked = answer("check", R"({"file": ")" + guards + R"("})",
                              {.knowledge = shared_knowledge(), .control = {.stop = stop.get_token()}});
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().kind, ErrorKind::stopped);
}

TEST(Ask, ShardsOfASweepAreAllOfIt) {
  const std::string over = R"("model": "resnet18", "over": {"batch": [1, 2, 3, 4, 5]})";
  const auto whole = asked("sweep", "{" + over + "}");
  ASSERT_TRUE(whole.ok());
  const json times = json::parse(*whole)["columns"]["iteration_ms"];
  for (size_t shard = 0; shard < 2; ++shard) {
    const auto part = asked("sweep", "{" + over + R"(, "shard": ")" + std::to_string(shard) + R"(/2"})");
    ASSERT_TRUE(part.ok()) << part.error().message();
    const json told = json::parse(*part);
    EXPECT_EQ(told["cases"], 5);
    EXPECT_EQ(told["columns"]["iteration_ms"].size(), 3 - shard);
    for (size_t row = 0; row < 3 - shard; ++row) {
      EXPECT_EQ(told["columns"]["iteration_ms"][row], times[shard + 2 * row]);
    }
  }
  EXPECT_FALSE(json::parse(*whole).contains("predicted_by")) << "the whole names nobody";
  refused("sweep", "{" + over + R"(, "shard": "2/2"})");
}

TEST(Ask, JudgesFiguresOfOthers) {
  const std::string lock = testing::TempDir() + "ask_test.lock";
  std::filesystem::remove(lock);
  const auto question = [&](const std::string& more, const std::string& milliseconds) {
    return R"({"lock": ")" + lock +
           R"(", "section": "mine", "guards": [{"name": "a", "asked": "{}", "verdict": "fits",)" +
           R"("reserved_gib": 1, "slower_than_baseline": "10%", "iteration_ms": )" + milliseconds + "}]" + more + "}";
  };
  const auto passes = [&](const std::string& more, const std::string& milliseconds) {
    const auto answered = asked("judge", question(more, milliseconds));
    EXPECT_TRUE(answered.ok()) << answered.error().message();
    return answered.ok() && json::parse(*answered)["passes"].get<bool>();
  };
  EXPECT_FALSE(passes("", "100")) << "no baseline";
  EXPECT_TRUE(passes(R"(, "update": true)", "100"));
  EXPECT_TRUE(passes("", "109"));
  EXPECT_FALSE(passes("", "111"));
  std::filesystem::remove(lock);
  EXPECT_NE(refused("judge", R"({"lock": "x", "section": "y", "guards": [3]})").what.find("list of tables"),
            std::string::npos);
  EXPECT_EQ(refused("judge", R"({"lock": "x", "section": "y", "guards": [{"name": "a"}]})").where, "guard a, asked");
}

TEST(Ask, AnswersSeveralAtOnce) {
  Knowledge fresh;  // which they load together
  const std::string question = R"({"model": "resnet18", "batch": 4})";
  std::vector<std::string> answers(4);
  {
    std::vector<std::jthread> threads;
    for (std::string& mine : answers) {
      threads.emplace_back([&] { mine = *answer("predict", question, {.knowledge = fresh}); });
    }
  }
  for (const std::string& mine : answers) EXPECT_EQ(mine, answers.front());
}

}  // namespace
}  // namespace forerun::ask
