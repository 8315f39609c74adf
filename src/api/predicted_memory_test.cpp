// Predicted peaks against measured ones. Nothing was fitted to whole runs: rules come from single ops and traces.
#include "api/predicted_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/data_dir.h"
#include "device/catalogue.h"
#include "ingest/capture/run_record.h"

namespace forerun {
namespace {

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

TEST(PredictedMemory, ComesNearTheMeasuredPeaks) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder.ok());
  const std::string file = (*folder / "h200" / "runs-1.jsonl.zst").string();
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
  const auto devices = load_devices(*folder / "devices");
  ASSERT_TRUE(devices.ok()) << devices.error().message();
  const auto workspaces = WorkspaceTable::load(*folder / "memory" / "workspaces.json");
  ASSERT_TRUE(workspaces.ok()) << workspaces.error().message();
  const Device device = *devices->find("h200");
  auto reader = RunRecordReader::open(file, Fields::inputs_and_measurements);
  ASSERT_TRUE(reader.ok());
  std::vector<double> allocated;
  std::vector<double> reserved;
  while (true) {
    const auto record = reader->next();
    ASSERT_TRUE(record.ok()) << record.error().message();
    if (!record->has_value()) break;
    const RunRecord& run = **record;
    if (!run.has_graph || !run.measured || run.measured->peak_reserved.value == 0) continue;
    const PredictedMemory memory = predicted_memory(run.run, device, *workspaces);
    const auto error = [](Bytes predicted, Bytes measured) {
      return std::abs(static_cast<double>(predicted.value - measured.value)) / static_cast<double>(measured.value);
    };
    allocated.push_back(error(memory.estimate.peak_allocated, run.measured->peak_allocated));
    reserved.push_back(error(memory.estimate.peak_reserved, run.measured->peak_reserved));
    EXPECT_TRUE(memory.fits) << run.run.id;
  }
  ASSERT_GT(allocated.size(), 200U);
  EXPECT_LE(mean(allocated), 0.008);
  EXPECT_LE(quantile(allocated, 0.5), 0.001);
  EXPECT_LE(quantile(allocated, 0.9), 0.02);
  EXPECT_LE(mean(reserved), 0.03);
  EXPECT_LE(quantile(reserved, 0.9), 0.08);
}

}  // namespace
}  // namespace forerun
