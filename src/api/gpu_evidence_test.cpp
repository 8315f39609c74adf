#include "api/gpu_evidence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "api/data.h"
#include "base/data_dir.h"
#include "base/json_file.h"
#include "predict/carried_models.h"

namespace forerun {
namespace {

TEST(GpuEvidence, TellsWhatWasMeasuredOnAGpuAndTheErrorToExpect) {
  const auto cost_models = load_cost_models();
  ASSERT_TRUE(cost_models.ok());
  const auto evidences = GpuEvidences::load(*cost_models);
  ASSERT_TRUE(evidences.ok()) << evidences.error().message();
  const auto of = [&](const char* gpu) { return evidences->of(*cost_models->devices.find(gpu)); };

  const GpuEvidence h200 = of("h200");
  EXPECT_EQ(h200.of, "own");
  EXPECT_GT(h200.runs, 100);
  EXPECT_LT(*h200.error, 0.1);
  EXPECT_GT(h200.ops.at("measured here"), 100'000);
  const GpuEvidence t4 = of("t4");
  EXPECT_EQ(t4.of, "own");
  EXPECT_GT(t4.runs, 0);
  EXPECT_GT(t4.ops.at("matrix product"), 100);
  EXPECT_EQ(of("l40s").of, "far");  // nobody's measurements of it are here
  EXPECT_TRUE(of("l40s").ops.empty());
  EXPECT_GT(*of("l40s").error, *h200.error);
  EXPECT_EQ(of("h800").of, "near");
  EXPECT_FALSE(of("b200").error.has_value());  // beyond: no run tells
}

TEST(GpuEvidence, TheKeptCountIsOfTheDataThatIsThere) {
  auto kept = JsonObject::read(*data_dir() / "cost" / "measured.json");
  ASSERT_TRUE(kept.ok());
  const auto now = data_summary({.paths = {(*data_dir() / "h200").string()}});
  ASSERT_TRUE(now.ok()) << now.error().message();
  EXPECT_EQ(kept->integer("samples"), now->samples)
      << "count again: forerun data summary data/h200 --json > data/cost/measured.json";
}

TEST(GpuEvidence, TheKeptEvaluationIsOfTheCostModelsThatAreThere) {
  auto file = JsonObject::read(*data_dir() / "evaluations" / "gpus.json");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->text("weights"), *carried_models_fingerprint())
      << "judge again: forerun-lab eval --suite gpus --data FOLDER --json > data/evaluations/gpus.json";
}

// Each GPU left out of all fits and ranges; the bands are what was reached, with some room.
TEST(GpuEvidence, KeptErrorsStayWithinTheirBands) {
  auto file = JsonObject::read(*data_dir() / "evaluations" / "gpus.json");
  ASSERT_TRUE(file.ok());
  double error = 0, held = 0, runs = 0, other_software = 0, roofline = 0, judged_alone = 0;
  for (JsonObject& run : file->objects("runs")) {
    const double ratio = run.number("measured_ms") / run.number("predicted_ms") / run.number("yardstick");
    if (run.flag("judged_alone")) {
      other_software += std::abs(1 / ratio - 1);
      roofline += std::abs(run.number("roofline_ms") / run.number("measured_ms") - 1);
      judged_alone += 1;
      continue;
    }
    error += std::abs(1 / ratio - 1);
    held += ratio >= run.number("low") && ratio <= run.number("high") ? 1 : 0;
    runs += 1;
  }
  std::map<std::string, double> convolutions;
  for (JsonObject& row : file->objects("ops")) {
    if (row.text("ops") == "convolution") convolutions[row.text("gpu")] = row.number("mre");
  }
  ASSERT_TRUE(file->status().ok()) << file->status().error().message();
  EXPECT_EQ(convolutions.size(), 5U);
  for (const auto& [gpu, mre] : convolutions) EXPECT_LT(mre, 0.3) << gpu;
  EXPECT_GE(runs, 80);
  EXPECT_LT(error / runs, 0.1);
  EXPECT_GE(judged_alone, 80);
  EXPECT_LT(other_software / judged_alone, 0.17);
  EXPECT_LT(other_software, 0.7 * roofline) << "nearer than what every op would take at its peak rate or bandwidth";
  EXPECT_GE(held / runs, 0.75);
}

}  // namespace
}  // namespace forerun
