// What-ifs against measured variants of the same step: trace of the base in, measured time of the variant beside it.
// The bands guard against getting worse; host-bound runs of one configuration differ by tens of percent between
// themselves, so they are wide.
#include "api/whatif.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "ingest/capture/run_record.h"
#include "ingest/kineto/kineto_reader.h"

#ifndef FORERUN_SHARED_DATA_DIR
#define FORERUN_SHARED_DATA_DIR ""
#endif

namespace forerun {
namespace {

struct Variant {
  std::string family;
  std::vector<std::string> applications;
  double measured_ms = 0, measured_gpu_ms = 0;
};

// What has to be applied to the base (float32, for-loop Adam, its batch) to get the run.
std::vector<std::string> applications(const TrainingRun& run, int64_t base_batch) {
  std::vector<std::string> names;
  if (run.setup.precision == Precision::amp_bf16) names.emplace_back("amp");
  if (run.setup.precision == Precision::tf32) names.emplace_back("tf32");
  if (run.setup.channels_last) names.emplace_back("channels_last");
  if (run.setup.optimizer.impl == OptimizerImpl::fused) names.emplace_back("fused_adam");
  if (run.setup.optimizer.impl == OptimizerImpl::foreach) names.emplace_back("foreach_adam");
  if (run.input.batch == 2 * base_batch) names.emplace_back("batch:factor=2");
  if (2 * run.input.batch == base_batch) names.emplace_back("batch:factor=0.5");
  return names;
}

std::vector<Variant> measured_variants(const std::string& file) {
  std::vector<Variant> variants;
  std::map<std::string, int64_t> batches;  // of the base, which comes first
  auto reader = RunRecordReader::open(file, Fields::inputs_and_measurements);
  EXPECT_TRUE(reader.ok());
  while (reader.ok()) {
    auto record = reader->next();
    EXPECT_TRUE(record.ok());
    if (!record.ok() || !record->has_value()) break;
    const RunRecord& r = **record;
    if (!r.measured || r.measured->out_of_memory) continue;
    const int64_t base = batches.emplace(r.run.family, r.run.input.batch).first->second;
    variants.push_back(
        {r.run.family, applications(r.run, base), r.measured->pipelined_median_ms, r.measured->gpu_busy_us * 1e-3});
  }
  return variants;
}

TEST(WhatIfTest, MeasuredVariantsStayWithinTheirBand) {
  const std::string folder = std::string(FORERUN_SHARED_DATA_DIR) + "/h200";
  if (!std::filesystem::exists(folder + "/whatif.jsonl.gz")) GTEST_SKIP() << "no measured variants in " << folder;
  const auto knowledge = load_knowledge();
  ASSERT_TRUE(knowledge.ok()) << knowledge.error().message();
  double sum = 0, gpu_sum = 0;
  int count = 0;
  for (const Variant& variant : measured_variants(folder + "/whatif.jsonl.gz")) {
    if (variant.applications.empty()) continue;
    const auto trace = read_kineto(folder + "/whatif_traces/" + variant.family + ".base.trace.json.gz");
    ASSERT_TRUE(trace.ok()) << trace.error().message();
    WhatIfQuestion question;
    question.applications = variant.applications;
    question.unprofiled = true;
    const auto answer = what_if(*trace, question, *knowledge);
    ASSERT_TRUE(answer.ok()) << answer.error().message();
    EXPECT_LE(answer->low_ms, answer->predicted_ms);
    EXPECT_GE(answer->high_ms, answer->predicted_ms);
    const double error = answer->predicted_ms / variant.measured_ms - 1;
    const double gpu_error = answer->predicted_gpu_ms / variant.measured_gpu_ms - 1;
    std::string names;
    for (const std::string& name : variant.applications) names += (names.empty() ? "" : " + ") + name;
    std::printf("%-14s %-22s measured %8.2f predicted %8.2f ms (%+5.1f %%), kernels %+5.1f %%\n",
                variant.family.c_str(), names.c_str(), variant.measured_ms, answer->predicted_ms, 100 * error,
                100 * gpu_error);
    sum += std::abs(error);
    gpu_sum += std::abs(gpu_error);
    ++count;
  }
  ASSERT_GE(count, 40);
  std::printf("mean error %.1f %%, of the kernels' sum %.1f %%\n", 100 * sum / count, 100 * gpu_sum / count);
  EXPECT_LE(sum / count, 0.13);
  EXPECT_LE(gpu_sum / count, 0.09);
}

}  // namespace
}  // namespace forerun
