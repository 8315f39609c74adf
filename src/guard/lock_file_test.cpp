#include "guard/lock_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace forerun::guard {
namespace {

Baseline some_baseline(double iteration_ms) {
  return {{.iteration_ms = iteration_ms, .reserved_gib = 5.98046875, .verdict = "fits"},
          R"({"model":"resnet50","gpu":"a100"})",
          "0.1.0, models 5f3a90c2d81b7e64"};
}

TEST(LockFile, ReadsWhatItWrote) {
  const Lock lock = {{"check", {{"resnet50 on a100", some_baseline(53.104512)}, {"plain-1", some_baseline(1)}}},
                     {"pytest", {{"tests/a.py::test[\"x\"\x7f\n.é]", some_baseline(1e-9)}}}};
  const std::string text = lock_text(lock);
  const auto read = parse_lock(text, "forerun.lock");
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(lock_text(*read), text);
  EXPECT_EQ(read->at("check").at("resnet50 on a100").figures.iteration_ms, 53.104512);
  EXPECT_EQ(read->at("pytest").size(), 1U);
  EXPECT_LT(text.find("[check.plain-1]"), text.find("[check.\"resnet50 on a100\"]")) << "sorted";
}

TEST(LockFile, RefusesWhatIsNoLock) {
  const std::string sound = lock_text({{"check", {{"a", some_baseline(2)}}}});
  const auto refused = [](const std::string& text) {
    const auto lock = parse_lock(text, "forerun.lock");
    ASSERT_FALSE(lock.ok()) << text;
    EXPECT_NE(lock.error().where.find("forerun.lock, line "), std::string::npos) << lock.error().where;
    EXPECT_NE(lock.error().remedy.find("--update"), std::string::npos);
  };
  refused("<<<<<<< HEAD\n" + sound);
  refused("check = 3\n");
  refused("[check]\na = 3\n");
  for (const char* field : {"asked", "iteration_ms", "reserved_gib", "verdict", "predicted_by"}) {
    std::string without = sound;
    without.replace(without.find(field), 1, "x");
    refused(without);
  }
  std::string odd = sound;
  odd.replace(odd.find("= 2\n"), 4, "= inf\n");
  refused(odd);
}

TEST(LockFile, IsEmptyWhereThereIsNone) {
  const auto path = std::filesystem::path(testing::TempDir()) / "lock_file_test.lock";
  std::filesystem::remove(path);
  const auto none = read_lock(path.string());
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->empty());
  ASSERT_TRUE(write_lock(path.string(), {{"check", {{"a", some_baseline(2)}}}}).ok());
  EXPECT_EQ(read_lock(path.string())->at("check").size(), 1U);
  std::filesystem::remove(path);
  EXPECT_FALSE(read_lock(testing::TempDir()).ok()) << "a folder";
}

}  // namespace
}  // namespace forerun::guard
