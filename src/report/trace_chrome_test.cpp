// The annotated trace: valid JSON, nothing lost, and no slices of a track that overlap without nesting.
#include "report/trace_chrome.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/needs_dataset.h"
#include "ingest/kineto/kineto_reader.h"
#include "report/trace_report.h"

namespace forerun {
namespace {

using nlohmann::json;

struct Written {
  ChromeCounts counts;
  json trace;
};

Written written(const std::vector<Trace>& ranks) {
  const TraceAnalysis analysis = analyze(ranks, {});
  const auto path = std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_chrome.json");
  const auto counts = write_chrome_trace(ranks, analysis, {}, path.string());
  EXPECT_TRUE(counts.ok()) << (counts.ok() ? "" : counts.error().message());
  Written result;
  if (counts.ok()) result.counts = *counts;
  std::ifstream file(path);
  result.trace = json::parse(file, nullptr, false);
  std::filesystem::remove(path);
  return result;
}

int64_t nanoseconds(const json& us) { return static_cast<int64_t>(us.get<double>() * 1000 + 0.5); }

// The plain way: a stack of open slices per track.
void expect_nested(const json& trace) {
  std::map<std::pair<int64_t, int64_t>, std::vector<std::pair<int64_t, int64_t>>> tracks;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const int64_t start = nanoseconds(event["ts"]);
    tracks[{event["pid"], event["tid"]}].emplace_back(start, -(start + nanoseconds(event["dur"])));
  }
  for (auto& [track, slices] : tracks) {
    std::sort(slices.begin(), slices.end());
    std::vector<int64_t> open;
    for (const auto& [start, minus_end] : slices) {
      while (!open.empty() && open.back() <= start) open.pop_back();
      ASSERT_TRUE(open.empty() || -minus_end <= open.back()) << "track " << track.first << "/" << track.second;
      open.push_back(-minus_end);
    }
  }
}

TEST(TraceChrome, OverlappingKernelsGetTracksOfTheirOwn) {
  const auto trace = read_kineto_text(
      R"([{"ph":"X","cat":"cpu_op","name":"say \"hi\"","pid":1,"tid":1,"ts":0,"dur":5,"args":{}},
      {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":1,"dur":2,"args":{"correlation":1}},
      {"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":10,"dur":10,"args":{"device":0,"stream":7,"correlation":1}},
      {"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":15,"dur":10,"args":{"device":0,"stream":7}},
      {"ph":"X","cat":"kernel","name":"c","pid":0,"tid":7,"ts":40,"dur":1.001,"args":{"device":0,"stream":7}}])",
      "test.json");
  ASSERT_TRUE(trace.ok());
  const Written out = written({*trace});
  ASSERT_FALSE(out.trace.is_discarded());
  expect_nested(out.trace);
  EXPECT_EQ(out.counts.left_out, 0);
  EXPECT_EQ(out.counts.arrows, 1);
  std::map<std::string, json> slices;
  bool idle = false;
  for (const json& event : out.trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    if (event["cat"] == "kernel" || event["cat"] == "cpu_op") slices[event["name"]] = event;
    idle = idle || event["cat"] == "idle";
  }
  ASSERT_EQ(slices.size(), 4U);
  EXPECT_TRUE(idle);
  EXPECT_NE(slices["a"]["tid"], slices["b"]["tid"]);
  EXPECT_EQ(slices["a"]["tid"], slices["c"]["tid"]);
  EXPECT_EQ(slices["a"]["args"]["op"], "say \"hi\"");
  EXPECT_EQ(nanoseconds(slices["c"]["dur"]), 1001);
}

TEST(TraceChrome, RealTracesNest) {
  NEEDS_DATASET(folder, "traces/");
  for (const char* file : {"hta/resnet50_ddp_a100_rank0of2.json.gz", "hta/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
                           "hta/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz"}) {
    auto trace = read_kineto(folder + file);
    ASSERT_TRUE(trace.ok());
    std::vector<Trace> ranks;
    ranks.push_back(std::move(*trace));
    const Written out = written(ranks);
    ASSERT_FALSE(out.trace.is_discarded()) << file;
    EXPECT_GE(out.counts.slices, static_cast<int64_t>(ranks[0].size())) << file;
    EXPECT_EQ(out.counts.left_out, 0) << file;
    expect_nested(out.trace);
  }
}

TEST(TraceReport, JsonIsWholeWhateverTheNames) {
  const auto trace = read_kineto_text(
      "[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"bad \xff "
      "name\",\"pid\":0,\"tid\":7,\"ts\":1,\"dur\":2,\"args\":{\"device\":0,"
      "\"stream\":7}}]",
      "test.json");
  ASSERT_TRUE(trace.ok());
  const TraceAnalysis analysis = analyze(std::span(&*trace, 1), {});
  const json report = json::parse(to_json(analysis, {}), nullptr, false);
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report["files"][0]["events"]["repaired"], 1);
  EXPECT_EQ(report["files"][0]["devices"][0]["compute_us"], 2.0);
  EXPECT_FALSE(report["warnings"].empty());
  EXPECT_NE(to_text(analysis, {}).find("repaired 1"), std::string::npos);
  EXPECT_EQ(to_csv(analysis).substr(0, 5), "rank,");
}

}  // namespace
}  // namespace forerun
