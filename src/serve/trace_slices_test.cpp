#include "serve/trace_slices.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace forerun::serve {
namespace {

TEST(TraceSlices, OfARealTrace) {
  ask::KeptTraces traces;
  TraceSlicer slicer(traces);
  const std::string file = FORERUN_SOURCE_DIR "/tests/corpus/kineto/small.json";
  const auto answer = slicer.answer(R"({"file": ")" + file + R"(", "px": 100})");
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  const auto json = nlohmann::json::parse(*answer);
  EXPECT_EQ(json["schema"], "forerun.timeline/1");
  int64_t events = 0;
  for (const auto& lane : json["lanes"]) {
    for (const auto& count : lane["events"]) events += count.get<int64_t>();
    for (const auto& name : lane["name_of"]) EXPECT_TRUE(json["names"].contains(std::to_string(name.get<int>())));
  }
  EXPECT_EQ(events, json["events"].get<int64_t>());
  EXPECT_FALSE(slicer.answer(R"({"file": ")" + file + R"(", "from": 5, "to": 2})").ok());
  EXPECT_FALSE(slicer.answer(R"({"file": ")" + file + R"(", "px": 0})").ok());
}

}  // namespace
}  // namespace forerun::serve
