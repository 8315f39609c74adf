// Predicted peaks against measured ones. Nothing was fitted to whole runs: rules come from single ops and traces.
#include "predict/predicted_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/check.h"
#include "base/data_dir.h"
#include "device/catalogue.h"
#include "ingest/capture/run_record.h"
#include "predict/predict.h"

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
  ASSERT_TRUE(std::filesystem::exists(file)) << file;
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

const CostModels& fully_known() {
  static const CostModels loaded = [] {
    Result<CostModels> result = load_cost_models();
    CHECK(result.ok(), result.error().message());
    return std::move(*result);
  }();
  return loaded;
}

PredictedMemory asked(const ModelRequest& request, const std::string& gpu, MemoryQuestion question = {}) {
  const Device device = *fully_known().devices.find(gpu);
  const Result<TrainingRun> run = build_run(request, device);
  CHECK(run.ok(), run.error().message());
  question.intervals = fully_known().memory_intervals;
  return predicted_memory(*run, device, fully_known().workspaces, question);
}

// Measured on an H200 with PyTorch 2.11 (lstm, d and h 650, AdamW foreach, 35 tokens): to the byte, and reserved memory
// really falls when the batch grows.
TEST(PredictedMemory, ReservedMemoryFallsWherePyTorchsDoes) {
  const struct {
    int64_t batch, allocated, reserved;
  } measured[] = {{1, 466054656, 557842432},
                  {2, 466406912, 555745280},
                  {4, 470079488, 497025024},
                  {8, 475681280, 517996544},
                  {16, 486704128, 511705088}};
  for (const auto& m : measured) {
    const PredictedMemory memory = asked({.model = "lstm_ptb_medium", .batch = m.batch}, "h200");
    EXPECT_EQ(memory.estimate.peak_allocated, Bytes(m.allocated)) << m.batch;
    EXPECT_EQ(memory.estimate.peak_reserved, Bytes(m.reserved)) << m.batch;
    EXPECT_EQ(memory.answer.verdict, FitVerdict::fits);
  }
}

// An allocator with endless memory would reserve 147.5 GiB with batch 1 and 142.8 GiB with batch 2.
TEST(PredictedMemory, WhatDoesNotFitNeverNeedsLessWithALargerBatch) {
  Bytes before;
  for (const int64_t batch : {1, 2, 3, 4, 8, 1000}) {
    ModelRequest request{.model = "llama2_7b", .batch = batch};
    request.setup.precision = Precision::amp_bf16;
    const PredictedMemory memory = asked(request, "4090");
    EXPECT_EQ(memory.answer.verdict, FitVerdict::does_not_fit);
    EXPECT_TRUE(memory.answer.at_least);
    EXPECT_GE(memory.estimate.peak_reserved, before) << batch;
    EXPECT_GE(memory.estimate.peak_reserved, memory.estimate.peak_allocated) << batch;
    before = memory.estimate.peak_reserved;
  }
  EXPECT_GT(gibibytes(before), 4096);  // found, not cut off
}

TEST(PredictedMemory, HasThreeVerdicts) {
  const Bytes needs = asked({.model = "resnet18"}, "h200").estimate.peak_reserved;
  Device device = *fully_known().devices.find("h200");
  const Result<TrainingRun> run = build_run({.model = "resnet18"}, device);
  ASSERT_TRUE(run.ok());
  MemoryQuestion question{.intervals = fully_known().memory_intervals};
  const RatioRange range = fully_known().memory_intervals.driver;
  ASSERT_GT(range.high, 1.01);
  const auto verdict = [&](double share) {
    device.memory = Bytes(std::llround(static_cast<double>((needs + context_of(device)).value) * share));
    return predicted_memory(*run, device, fully_known().workspaces, question);
  };
  const PredictedMemory surely = verdict(range.high + 0.001);
  EXPECT_EQ(surely.answer.verdict, FitVerdict::fits);
  EXPECT_TRUE(surely.fits);
  EXPECT_LE(surely.answer.driver.high, device.memory);
  // Below what its blocks take together, and still within reach of the lower end.
  const auto least = static_cast<double>((surely.estimate.peak_allocated + surely.context).value) /
                     static_cast<double>((needs + surely.context).value);
  const PredictedMemory perhaps = verdict(least * (1 + (range.high - 1) / 2));
  EXPECT_EQ(perhaps.answer.verdict, FitVerdict::may_not_fit);
  EXPECT_GT(perhaps.answer.driver.high, device.memory);
  EXPECT_LE(perhaps.answer.driver.low, device.memory);
  const PredictedMemory never = verdict(least / 2);
  EXPECT_EQ(never.answer.verdict, FitVerdict::does_not_fit);
  EXPECT_FALSE(never.fits);
  EXPECT_GE(never.answer.driver.low, device.memory);
  // A margin takes the place of the range's upper end.
  question.margin = 1 / least;
  EXPECT_EQ(verdict(1.0).answer.verdict, FitVerdict::may_not_fit);
  question.margin = 0;
  EXPECT_EQ(verdict(1.0).answer.verdict, FitVerdict::fits);
}

}  // namespace
}  // namespace forerun
