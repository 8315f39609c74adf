#include "api/zoo_check.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "derive/iteration.h"
#include "ingest/capture/run_record.h"
#include "ingest/capture/run_record_writer.h"
#include "zoo/zoo.h"

namespace forerun {
namespace {

const std::string kStarter = FORERUN_SHARED_DATA_DIR "/h200/starter.jsonl.gz";

// The bar: at least 97 % by GPU time and 90 % by count on every family; reached is all of it.
TEST(ZooCheck, MatchesWhatPyTorchDispatched) {
  if (!std::filesystem::exists(kStarter)) GTEST_SKIP() << "no recorded runs at " << kStarter;
  const Result<ZooCheck> check = check_zoo(kStarter);
  ASSERT_TRUE(check.ok()) << check.error().message();
  EXPECT_TRUE(check->problems.empty()) << check->problems.front();
  std::set<std::string> families;
  for (const FamilyCheck& family : check->families) {
    families.insert(family.family);
    EXPECT_EQ(family.by_time(), 1.0) << family.family << ": " << family.misses.front().example;
    EXPECT_EQ(family.by_count(), 1.0) << family.family << ": " << family.misses.front().example;
    EXPECT_EQ(family.surplus_ops, 0) << family.family << ": " << family.surplus.front().example;
  }
  EXPECT_EQ(families, (std::set<std::string>{"alexnet", "convnext", "efficientnet", "lstm", "mnasnet", "resnet", "rnn",
                                             "transformer", "wide_resnet"}));
}

// Not only the same ops: in the same order, in every record.
TEST(ZooCheck, DerivesOpsInTheOrderOfTheCapture) {
  if (!std::filesystem::exists(kStarter)) GTEST_SKIP() << "no recorded runs at " << kStarter;
  Result<RunRecordReader> reader = RunRecordReader::open(kStarter, Fields::inputs);
  ASSERT_TRUE(reader.ok());
  int records = 0;
  while (true) {
    const Result<std::optional<RunRecord>> next = reader->next();
    ASSERT_TRUE(next.ok()) << next.error().message();
    if (!next->has_value()) break;
    const TrainingRun& run = (*next)->run;
    const Result<zoo::Model> model = zoo::build_recorded(run.family, run.arguments, run.input);
    ASSERT_TRUE(model.ok()) << model.error().message();
    const Graph derived = *derive::derive_iteration(model->forward, run.input, run.setup);
    ASSERT_EQ(derived.op_count(), run.graph.op_count()) << run.id;
    for (size_t i = 0; i < derived.op_count(); ++i) {
      ASSERT_EQ(signature(derived, derived.ops()[i]), signature(run.graph, run.graph.ops()[i]))
          << run.id << ", op " << i;
    }
    ++records;
  }
  EXPECT_EQ(records, 222);
}

// Captured on an H200 for this test, with small models: families, precisions, layouts and optimizers that the recorded
// runs do not have. What is missed is known: transformers' look at packed sequences, and T5 (see data/captures/README.md).
TEST(ZooCheck, MatchesFurtherCaptures) {
  const Result<ZooCheck> check = check_zoo(FORERUN_DATA_DIR "/captures/zoo.jsonl.gz");
  ASSERT_TRUE(check.ok()) << check.error().message();
  EXPECT_TRUE(check->problems.empty()) << check->problems.front();
  const std::map<std::string, double> least = {{"gpt2", 0.96}, {"llama", 0.97}, {"t5", 0.89}};
  std::set<std::string> families;
  for (const FamilyCheck& family : check->families) {
    families.insert(family.family);
    EXPECT_FALSE(family.has_times());
    const auto known = least.find(family.family);
    if (known == least.end()) {
      EXPECT_EQ(family.by_count(), 1.0) << family.family << ": " << family.misses.front().example;
      EXPECT_EQ(family.surplus_ops, 0) << family.family << ": " << family.surplus.front().example;
    } else {
      EXPECT_GE(family.by_count(), known->second) << family.family;
    }
  }
  EXPECT_EQ(families, (std::set<std::string>{"bert", "densenet", "gpt2", "llama", "mobilenet_v2", "mobilenet_v3",
                                             "resnet", "t5", "unet"}));
}

// A record of a derived run with one op's shape changed: exactly that op is missed, and one is too many.
TEST(ZooCheck, FindsAnOpThatDiffers) {
  const Result<zoo::Model> model = zoo::build("resnet18", {{"batch", "2"}, {"image", "64"}});
  ASSERT_TRUE(model.ok());
  TrainingRun run;
  run.id = "derived/1";
  run.family = "resnet";
  run.arguments = R"({"block": "basic", "layers": [2, 2, 2, 2], "width": 64, "classes": 1000})";
  run.input = model->input;
  run.environment.gpu = "NVIDIA H200";
  run.graph = *derive::derive_iteration(model->forward, run.input, run.setup);
  std::string line = to_run_record(run);
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "forerun_zoo_check_test.jsonl";
  std::ofstream(file) << line;
  const Result<ZooCheck> same = check_zoo(file.string());
  ASSERT_TRUE(same.ok()) << same.error().message();
  ASSERT_EQ(same->families.size(), 1U) << (same->problems.empty() ? "" : same->problems.front());
  EXPECT_EQ(same->families[0].by_count(), 1.0);

  const std::string name = "aten.max_pool2d_with_indices.default";
  line.replace(line.find(name), name.size(), "aten.max_pool3d_with_indices.default");
  std::ofstream(file) << line;
  const Result<ZooCheck> other = check_zoo(file.string());
  ASSERT_TRUE(other.ok());
  const FamilyCheck& family = other->families.at(0);
  EXPECT_EQ(family.matched_ops, family.ops - 1);
  EXPECT_EQ(family.surplus_ops, 1);
  ASSERT_EQ(family.misses.size(), 1U);
  EXPECT_EQ(family.misses[0].op, "forward aten.max_pool3d_with_indices.default");
  EXPECT_EQ(family.surplus.at(0).op, "forward aten.max_pool2d_with_indices.default");
  std::filesystem::remove(file);
}

TEST(ZooCheck, SaysWhyAFileCannotBeCompared) {
  const auto missing = check_zoo("no/such/file.jsonl");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message().find("no/such/file.jsonl"), std::string::npos);
}

}  // namespace
}  // namespace forerun
