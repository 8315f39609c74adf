// `forerun fit` and the files of `forerun predict --memory-...` as a user meets them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

TEST(FitCommand, AnswersInTextAndJson) {
  const Outcome text = forerun_outcome("fit resnet18 --gpu t4");
  EXPECT_EQ(text.code, 0) << text.out;
  EXPECT_NE(text.out.find("the largest batch that fits is"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("What would let a larger one in"), std::string::npos);
  const Outcome json = forerun_outcome("fit resnet18 --gpu t4 --json --brief");
  ASSERT_EQ(json.code, 0) << json.out;
  const auto answer = nlohmann::json::parse(json.out);
  EXPECT_GT(answer["largest"], 16);
  EXPECT_EQ(answer["axis"], "batch");
  EXPECT_EQ(answer["changes"].size(), 0U);
  const Outcome tight = forerun_outcome("fit resnet18 --gpu t4 --json --brief --reserve 50%");
  EXPECT_LT(nlohmann::json::parse(tight.out)["largest"], answer["largest"]);
}

TEST(FitCommand, TellsTheWholeRunAtTheLargestBatch) {
  const std::string run = "fit resnet18 --gpu t4 --brief --epochs 2 --dataset-size 1M --price t4=0.5";
  const Outcome json = forerun_outcome(run + " --json");
  ASSERT_EQ(json.code, 0) << json.out;
  const auto answer = nlohmann::json::parse(json.out);
  const auto& job = answer["prediction"]["job"];
  const int64_t batch = answer["largest"];
  EXPECT_EQ(job["iterations"], (2'000'000 + batch - 1) / batch);
  EXPECT_DOUBLE_EQ(job["cost"].get<double>(), 0.5 * job["gpu_hours"].get<double>());
  EXPECT_GT(job["energy_kwh"], 0);
  // The same as predict tells of that batch.
  const Outcome same =
      forerun_outcome("predict resnet18 --gpu t4 --epochs 2 --dataset-size 1M --price t4=0.5 --batch " +
                      std::to_string(batch) + " --json");
  EXPECT_EQ(nlohmann::json::parse(same.out)["job"], job);
  const Outcome text = forerun_outcome(run);
  EXPECT_NE(text.out.find("\nJob  "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(", cost "), std::string::npos) << text.out;
  // Where nothing fits there is no run to plan.
  const Outcome none = forerun_outcome("fit llama2_7b --gpu t4 --brief --samples 1M --json");
  EXPECT_EQ(none.code, 3);
  EXPECT_FALSE(nlohmann::json::parse(none.out)["prediction"].contains("job")) << none.out;
}

TEST(FitCommand, ExitsWithThreeWhereNothingFits) {
  const Outcome none = forerun_outcome("fit llama2_7b --gpu t4 --brief");
  EXPECT_EQ(none.code, 3) << none.out;
}

TEST(FitCommand, NamesWhatIsWrong) {
  EXPECT_EQ(forerun_outcome("fit resnet18 --reserve much").code, 1);
  EXPECT_EQ(forerun_outcome("fit resnet18 --batch 4").code, 1);
  EXPECT_EQ(forerun_outcome("fit resnet18 --gpus 4").code, 1);
  EXPECT_EQ(forerun_outcome("fit resnet18 --allocator fast:True").code, 1);
  EXPECT_EQ(forerun_outcome("fit resnet18 --zero 4").code, 2);
  const Outcome misspelt = forerun_outcome("fit resnet19");
  EXPECT_EQ(misspelt.code, 1);
  EXPECT_NE(misspelt.out.find("resnet18"), std::string::npos) << misspelt.out;
}

TEST(PredictCommand, SaysHowMemoryIsMade) {
  const Outcome json =
      forerun_outcome("predict gpt2_small --json --allocator expandable_segments:True --zero 3 --gpus 4");
  ASSERT_EQ(json.code, 0) << json.out;
  const auto answer = nlohmann::json::parse(json.out);
  EXPECT_FALSE(answer["memory_peak"]["op"].get<std::string>().empty());
  EXPECT_FALSE(answer["memory_peak"]["live"].empty());
  EXPECT_EQ(answer["data_parallel"]["zero"], 3);
  int64_t sum = 0;
  for (const auto& [part, bytes] : answer["memory"].items()) sum += bytes.get<int64_t>();
  EXPECT_EQ(sum, answer["peak_reserved"].get<int64_t>() + answer["context"].get<int64_t>());
  const auto& range = answer["memory_ranges"]["reserved"];
  EXPECT_LE(range["low"], range["expected"]);
  EXPECT_LE(range["expected"], range["high"]);
}

// Python reads the snapshot, and segments hold their blocks without a gap.
constexpr const char* kCheckSnapshot = R"(
import pickle, sys
data = pickle.load(open(sys.argv[1], "rb"))
live = {}
highest = now = 0
for event in data["device_traces"][0]:
    if event["action"] == "alloc":
        assert event["addr"] not in live
        live[event["addr"]] = event["size"]
        now += event["size"]
        highest = max(highest, now)
    elif event["action"] == "free_completed":
        now -= live.pop(event["addr"])
held = 0
for segment in data["segments"]:
    assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
    held += sum(block["requested_size"] for block in segment["blocks"] if block["state"] == "active_allocated")
assert held == now, (held, now)
names = {frame["name"] for event in data["device_traces"][0] for frame in event["frames"]}
assert "aten.convolution.default" in names and "backward" in names, names
print(highest, sum(segment["total_size"] for segment in data["segments"]))
)";

TEST(PredictCommand, WritesPictureCountersAndSnapshot) {
  const auto folder = std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_memory_files");
  std::filesystem::create_directories(folder);
  const auto path = [&](const char* name) { return (folder / name).string(); };
  const Outcome done = forerun_outcome("predict resnet18 --json --memory-svg " + path("m.svg") + " --memory-chrome " +
                                       path("m.json") + " --memory-snapshot " + path("m.pickle"));
  ASSERT_EQ(done.code, 0) << done.out;
  const auto answer = nlohmann::json::parse(done.out);
  std::ifstream svg(path("m.svg"));
  std::string first;
  std::getline(svg, first);
  EXPECT_TRUE(first.starts_with("<svg"));
  std::ifstream chrome(path("m.json"));
  EXPECT_GT(nlohmann::json::parse(chrome)["traceEvents"].size(), 100U);
  std::ofstream(path("check.py")) << kCheckSnapshot;
  const Outcome checked = outcome_of("python3 " + path("check.py") + " " + path("m.pickle") + " 2>&1");
  EXPECT_EQ(checked.code, 0) << checked.out;
  EXPECT_EQ(checked.out,
            answer["memory_ranges"]["requested"]["expected"].dump() + " " + answer["peak_reserved"].dump() + "\n");
  EXPECT_EQ(forerun_outcome("predict resnet18 --memory-svg " + path("no/where.svg")).code, 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace forerun::cli
