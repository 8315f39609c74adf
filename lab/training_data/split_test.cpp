// What is judged was not trained on: neither the records themselves nor models that are nearly the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/data_dir.h"
#include "lab/training_data/learning_data.h"
#include "records/data_configuration.h"
#include "records/data_files.h"
#include "records/data_scan.h"
#include "records/data_split.h"

namespace forerun {
namespace {

constexpr size_t kFewestWeights = 8;  // a model with less has too little to be compared by
constexpr double kTwin = 0.9;         // of the weights have the same shapes

using Weights = std::map<std::vector<int64_t>, int64_t>;  // shape -> how many

// Shapes of the parameters of two dimensions or more: biases and norms only tell the widths again.
Weights weights_of(const Graph& graph) {
  Weights weights;
  std::set<uint32_t> seen;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    for (const TensorId input : graph.inputs(graph.op(OpId(i)))) {
      const Tensor& tensor = graph.tensor(input);
      if (graph.storage(tensor.storage).root != Root::parameter || !seen.insert(tensor.storage.value).second) continue;
      const auto shape = graph.shape(input);
      if (shape.size() >= 2) ++weights[{shape.begin(), shape.end()}];
    }
  }
  return weights;
}

int64_t count_of(const Weights& weights) {
  int64_t count = 0;
  for (const auto& [shape, times] : weights) count += times;
  return count;
}

double alike(const Weights& a, const Weights& b) {
  int64_t shared = 0;
  for (const auto& [shape, times] : a) {
    if (const auto other = b.find(shape); other != b.end()) shared += std::min(times, other->second);
  }
  return static_cast<double>(shared) / static_cast<double>(std::max(count_of(a), count_of(b)));
}

TEST(MeasuredSplit, NoJudgedModelAndNoNearTwinIsTrainedOn) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder);
  const auto files = record_files({(*folder / "h200").string()});
  ASSERT_TRUE(files);
  const auto split = DataSplit::beside(*files);
  ASSERT_TRUE(split);
  const auto part = TrainingPart::beside(*files);
  ASSERT_TRUE(part);
  std::map<Weights, std::string> trained;
  std::map<Weights, std::string> judged;
  std::set<std::string> trained_ids;
  std::set<std::string> judged_ids;
  const auto take = [&](const RunRecord& record, const DataPlace& /*place*/) {
    const std::string of = split->part_of(record.run);
    EXPECT_NE(of, "") << record.run.id << " is in no part";
    const bool train = part->contains(record.run);
    EXPECT_EQ(train, of == DataSplit::kTrain) << record.run.id;
    if (of == "twin") return;
    (train ? trained_ids : judged_ids).insert(record.run.id);
    if (!record.has_graph) return;
    const Weights weights = weights_of(record.run.graph);
    if (count_of(weights) >= static_cast<int64_t>(kFewestWeights))
      (train ? trained : judged).emplace(weights, record.run.id);
  };
  const Status status =
      scan_files(*files, Fields::inputs, {.run = take, .sample = {}, .problem = [](const DataProblem&) {}});
  ASSERT_TRUE(status.ok());
  EXPECT_GT(trained.size(), 300U);
  EXPECT_GT(judged.size(), 200U);
  for (const std::string& id : judged_ids) EXPECT_FALSE(trained_ids.contains(id)) << id;
  for (const auto& [weights, id] : judged) {
    for (const auto& [others, other] : trained) {
      EXPECT_LT(alike(weights, others), kTwin) << id << " is judged, and its near twin " << other << " trained on";
    }
  }
}

TEST(MeasuredSplit, WhatIfModelsAreJudgedWhateverTheirFamily) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder);
  const auto split = DataSplit::beside({(*folder / "h200" / DataSplit::kFile).string()});
  ASSERT_TRUE(split);
  EXPECT_EQ(split->part_of_family("mobilenet_v3"), "train");
  EXPECT_EQ(split->part_of("pairs/00077-mobilenet_v3", "mobilenet_v3"), "whatif");
  EXPECT_EQ(split->part_of("h200/00001-mobilenet_v3", "mobilenet_v3"), "train");
}

// What a random split neither trains on nor judges.
TEST(MeasuredSplit, WhatIfModelsAreKeptBackFromARandomSplit) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder);
  auto data = load_record_data(
      {(*folder / "h200" / "first-whatif.jsonl.zst").string(), (*folder / "h200" / "first-test.jsonl.zst").string()},
      {}, [](const DataProblem&) {});
  ASSERT_TRUE(data.ok()) << data.error().message();
  ASSERT_TRUE(learn::divide(*data, {.random = true}).ok());
  size_t kept_back = 0;
  for (const learn::Example& example : data->examples()) {
    EXPECT_EQ(example.kept_back, example.id.starts_with("pairs/")) << example.id;
    EXPECT_EQ(example.kept_back, example.split == learn::Split::ood) << example.id;
    kept_back += example.kept_back ? 1 : 0;
  }
  EXPECT_GT(kept_back, 40U);
  EXPECT_GT(learn::select(*data, learn::Split::test).size(), 10U);
}

TEST(MeasuredSplit, RepeatsAndOtherOptimizersAreOneWorkload) {
  TrainingRun run;
  run.family = "resnet";
  run.arguments = R"({"depth":18})";
  run.id = "a";
  // Kept weights rest on these words: other ones would deal them anew, and judge what was trained on.
  EXPECT_EQ(workload_of(run), R"(resnet|{"depth":18}|image|1|3|224|1000||fp32)");
  TrainingRun other = run;
  other.id = "b";
  other.setup.optimizer.kind = OptimizerKind::adamw;
  other.setup.channels_last = true;
  EXPECT_EQ(workload_of(other), workload_of(run));
  other.input.batch = 2;
  EXPECT_NE(workload_of(other), workload_of(run));
  other = run;
  other.setup.precision = Precision::amp_bf16;
  EXPECT_NE(workload_of(other), workload_of(run));
  other.family = "capture";
  EXPECT_EQ(workload_of(other), "a") << "too little is known of a user's own model";
}

}  // namespace
}  // namespace forerun
