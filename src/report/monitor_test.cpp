#include "report/monitor.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace forerun {
namespace {

constexpr int64_t kTwentyMs = 20'000'000;

monitor::Recording example_recording() {
  monitor::Recording recording;
  recording.command = {"train", "<a>"};
  recording.seconds = 0.12;
  recording.gpu_missing = "no NVIDIA driver";
  recording.send = {kTwentyMs, {0, 0, 50e6, 0, 50e6, 0}};
  recording.receive = {kTwentyMs, {0, 0, 0, 0, 0, 0}};
  return recording;
}

TEST(MonitorReport, TextHasPatternAndMegabytesAndSaysThatThereIsNoGpu) {
  const std::string text = to_text(example_recording());
  EXPECT_NE(text.find("BIB"), std::string::npos) << text;
  EXPECT_NE(text.find("50.00 MB/s"), std::string::npos) << text;
  EXPECT_NE(text.find("no GPU series: no NVIDIA driver"), std::string::npos) << text;
  EXPECT_EQ(text.find("GPU memory"), std::string::npos) << text;
}

TEST(MonitorReport, RecordHasSeriesInUnitsAndMetrics) {
  monitor::Recording recording = example_recording();
  recording.source = monitor::GpuSource::kGpm;
  recording.gpu = {kTwentyMs, {12.34, 80, 12.34}};
  recording.memory = {kTwentyMs, {1, 2, 3}};
  const auto json = nlohmann::json::parse(to_json(recording));
  EXPECT_EQ(json["schema"], "resources/1");
  EXPECT_EQ(json["series"]["send"][2].get<double>() * json["series"]["network_unit"].get<double>(), 50e6);
  EXPECT_EQ(json["series"]["gpu"][0], 123);
  EXPECT_EQ(json["series"]["gpu_unit"], 0.1);
  EXPECT_EQ(json["metrics"]["send"]["amount"], 50.0);
  EXPECT_EQ(json["metrics"]["send"]["burst_ms"], 20.0);
  EXPECT_EQ(json["metrics"]["receive"]["pattern"], "I");
  EXPECT_EQ(json["metrics"]["gpu"]["amount"], 80.0);
}

TEST(MonitorReport, PictureHasAPanelForEachSeriesThatIsThere) {
  const std::string svg = to_svg(example_recording());
  EXPECT_NE(svg.find("send (MB/s), BIB"), std::string::npos);
  EXPECT_NE(svg.find("receive (MB/s), I"), std::string::npos);
  EXPECT_EQ(svg.find("GPU ("), std::string::npos);
  EXPECT_EQ(svg.rfind("</svg>\n"), svg.size() - 7);
}

}  // namespace
}  // namespace forerun
