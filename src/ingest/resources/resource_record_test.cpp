// resources/1 records: what is read of a good one, and that a broken one is an Error that names what is wrong.
#include "ingest/resources/resource_record.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace forerun {
namespace {

const std::string& resource_line() {
  static const std::string line =
      R"({"schema":"resources/1","id":"P1w2-10G/a/sync","status":"ok","family":"alexnet","args":{"width":64},)"
      R"("input":["image",16,3,224,1000],"run":{"precision":"fp32","optimizer":{"name":"SGD","impl":"foreach",)"
      R"("lr":0.001,"momentum":0.0,"weight_decay":0.0},"channels_last":false,"cudnn_benchmark":false,"accumulate":1},)"
      R"("model":"a","setting":"P1w2-10G","mode":"sync","tcp":"reno","servers":1,"workers":2,"link_bits_per_second":1e10,)"
      R"("iteration_ms":[10.0,20.0],"phases_ms":{"compute":6.5},"metrics":{"gpu":{"idle_ms":1,"burst_ms":2,"amount":3},)"
      R"("memory":{"idle_ms":4,"burst_ms":5,"amount":6},"send":{"idle_ms":7,"burst_ms":8,"amount":9},)"
      R"("receive":{"idle_ms":10,"burst_ms":11,"amount":12}}})";
  return line;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(ResourceReader, ReadsWhatARecordSays) {
  const auto record = ResourceReader().decode(resource_line());
  ASSERT_TRUE(record) << record.error().message();
  EXPECT_EQ(record->id, "P1w2-10G/a/sync");
  EXPECT_EQ(record->described.run.family, "alexnet");
  EXPECT_EQ(record->described.run.input.batch, 16);
  EXPECT_FALSE(record->described.has_graph);
  EXPECT_EQ(record->mode, "sync");
  EXPECT_EQ(record->tcp, "reno");
  EXPECT_EQ(record->workers, 2);
  EXPECT_DOUBLE_EQ(record->bits_per_second, 1e10);
  EXPECT_DOUBLE_EQ(record->measured.iteration_ms, 15);
  EXPECT_DOUBLE_EQ(record->measured.steps.compute, 6.5);
  EXPECT_DOUBLE_EQ(record->measured.steps.exchange, -1);
  EXPECT_EQ(record->measured.metrics[0], (BurstFigures{1, 2, 3}));
  EXPECT_EQ(record->measured.metrics[3], (BurstFigures{10, 11, 12}));
}

TEST(ResourceReader, TellsWhereTheTimesOfTheGpuComeFrom) {
  const auto clocks = ResourceReader().decode(resource_line());
  ASSERT_TRUE(clocks);
  EXPECT_EQ(clocks->measured.gpu_times, GpuTimes::clocks);
  EXPECT_EQ(clocks->measured.by_clocks[1], (BurstFigures{4, 5, 6}));
  // Where kernels were seen, clocks are told apart: their times, at the levels of the counters.
  std::string line = replaced(resource_line(), R"("metrics":{)",
                              R"("gpu_times":"kernels","levels":{"gpu":50,"memory":10},"metrics":{)"
                              R"("compute":{"pattern":"BIB","idle_ms":20,"burst_ms":30,"amount":90},)");
  line = replaced(line, R"("memory":{"idle_ms")", R"("memory":{"pattern":"B","idle_ms")");
  const auto kernels = ResourceReader().decode(line);
  ASSERT_TRUE(kernels) << kernels.error().message();
  EXPECT_EQ(kernels->measured.gpu_times, GpuTimes::kernels);
  EXPECT_EQ(kernels->measured.metrics[0], (BurstFigures{1, 2, 3}));
  EXPECT_EQ(kernels->measured.metrics[1].pattern, BurstPattern::burst);
  EXPECT_EQ(kernels->measured.by_clocks[0], (BurstFigures{20, 30, 45, BurstPattern::alternating}));
  EXPECT_EQ(kernels->measured.by_clocks[1], (BurstFigures{20, 30, 9, BurstPattern::alternating}));
}

TEST(ResourceReader, SaysWhatIsWrong) {
  ResourceReader reader;
  const std::vector<std::pair<std::string, std::string>> broken = {
      {"not JSON", "JSON"},
      {replaced(resource_line(), "\"receive\":", "\"other\":"), "receive"},
      {replaced(resource_line(), "\"amount\":9", "\"amount\":-9"), "amount"},
      {replaced(resource_line(), "\"mode\":", "\"moda\":"), "mode"},
      {replaced(resource_line(), "\"workers\":2", "\"workers\":0"), "workers"},
      {replaced(resource_line(), "[10.0,20.0]", "[]"), "iteration_ms"},
      {replaced(resource_line(), "\"args\":", "\"argz\":"), "args"},
  };
  for (const auto& [line, word] : broken) {
    const auto record = reader.decode(line);
    ASSERT_FALSE(record) << line;
    EXPECT_NE(record.error().message().find(word), std::string::npos) << record.error().message();
  }
}

TEST(ResourceReader, GoesOnBehindABrokenRecord) {
  const std::string path = (std::filesystem::temp_directory_path() / "forerun_resource_reader_test.jsonl").string();
  std::ofstream(path) << replaced(resource_line(), "\"amount\":9", "\"amount\":null") << "\n"
                      << replaced(resource_line(), "\"ok\"", "\"failed\"") << "\n\n"
                      << resource_line() << "\n";
  std::vector<std::string> read;
  std::vector<std::string> errors;
  const Status status = ResourceReader().read(
      path, [&](ResourceRecord&& record) { read.push_back(record.id); },
      [&](const Error& error) { errors.push_back(error.message()); });
  std::filesystem::remove(path);
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(read.size(), 1U);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_NE(errors[0].find("line 1"), std::string::npos);
}

}  // namespace
}  // namespace forerun
