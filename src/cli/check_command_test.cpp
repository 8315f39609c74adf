// `forerun check` as CI uses it: a file of guards, a lock that is committed, exit codes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/output_file.h"
#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

namespace fs = std::filesystem;

class CheckCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("check_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(write_whole_file((folder_ / name).string(), text).ok());
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }
  [[nodiscard]] Outcome check(const std::string& options = "") const {
    return forerun_outcome("check " + (folder_ / "forerun.toml").string() + " " + options);
  }
  static void expect_says(const Outcome& outcome, int code, const std::string& text) {
    EXPECT_EQ(outcome.code, code) << outcome.out;
    EXPECT_NE(outcome.out.find(text), std::string::npos) << outcome.out;
  }

  fs::path folder_;
};

std::string guard_of_batch(int batch) {
  return "[guard.small]\nmodel = \"resnet18\"\ngpu = \"t4\"\nbatch = " + std::to_string(batch) +
         "\nfits = true\nslower_than_baseline = \"10%\"\nmemory_above_baseline = \"5%\"\n";
}

TEST_F(CheckCommand, HoldsAModelToItsBaseline) {
  write("forerun.toml", guard_of_batch(8));
  expect_says(check(), 3, "no baseline");
  expect_says(check("--update"), 0, "holds");
  const std::string lock = read("forerun.lock");
  EXPECT_NE(lock.find("[check.small]"), std::string::npos) << lock;
  expect_says(check(), 0, "1 guard holds");
  expect_says(check("--update"), 0, "");
  EXPECT_EQ(read("forerun.lock"), lock) << "nothing changed";
  write("forerun.toml", guard_of_batch(16));
  expect_says(check(), 3, "fails");
  expect_says(check(), 3, "another question");
  expect_says(check("--json"), 3, "\"passes\":false");
  expect_says(check("--markdown"), 3, "| small | slower_than_baseline |");
  EXPECT_EQ(read("forerun.lock"), lock) << "a check writes nothing";
}

TEST_F(CheckCommand, BlamesNobodyForAnotherForerun) {
  write("forerun.toml", guard_of_batch(16));
  expect_says(check("--update"), 0, "");
  std::string lock = read("forerun.lock");
  lock.replace(lock.find(", models ") + 9, 4, "0000");
  write("forerun.lock", lock);
  expect_says(check(), 0, "1 guard holds");
  const size_t at = lock.find("iteration_ms = ") + 15;
  lock.replace(at, lock.find('\n', at) - at, "0.5");
  write("forerun.lock", lock);
  expect_says(check(), 0, "not judged");
  expect_says(check(), 0, "other models of");
}

TEST_F(CheckCommand, LimitsNeedNoBaseline) {
  write("forerun.toml", "[guard.a]\nmodel = \"llama2_7b\"\ngpu = [\"t4\", \"h200\"]\nfits = true\n");
  expect_says(check(), 3, "1 of 2 guards fails");
  write("forerun.toml", "[guard.a]\nmodel = \"resnet18\"\niteration_ms_at_most = 1e6\nreserved_gib_at_most = 0.001\n");
  expect_says(check(), 3, "0.001 GiB");
  expect_says(check("--update"), 3, "fails");
}

TEST_F(CheckCommand, AnUpdateKeepsWhatOthersLocked) {
  write("forerun.toml", guard_of_batch(8));
  const std::string other =
      "[pytest.\"t.py::a\"]\nasked = \"{}\"\niteration_ms = 1\nreserved_gib = 1\nverdict = \"fits\"\npredicted_by = "
      "\"x\"\n";
  std::string gone = other;
  gone.replace(gone.find("pytest.\"t.py::a\""), 16, "check.gone");
  write("forerun.lock", gone + other);
  expect_says(check("--update"), 0, "");
  EXPECT_NE(read("forerun.lock").find("t.py::a"), std::string::npos);
  EXPECT_EQ(read("forerun.lock").find("gone"), std::string::npos) << "a guard that is no more";
  write("nightly.toml", "[guard.large]\nmodel = \"resnet18\"\nslower_than_baseline = \"1%\"\n");
  EXPECT_EQ(forerun_outcome("check " + (folder_ / "nightly.toml").string() + " --update").code, 0);
  expect_says(check(), 0, "1 guard holds");
}

TEST_F(CheckCommand, SaysWhatIsWrong) {
  write("forerun.toml", "[guard.a]\nmodel = \"resnet18\"\nbacth = 8\nfits = true\n");
  expect_says(check(), 1, "did you mean batch");
  write("forerun.toml", "[guard.a]\nmodel = \"resnet18\"\nslower_then_baseline = \"10%\"\nfits = true\n");
  expect_says(check(), 1, "slower_than_baseline");
  write("forerun.toml", "[guard.a]\nmodel = \"resnet18\"\n");
  expect_says(check(), 1, "no rule says what must hold");
  write("forerun.toml", "[guard.a]\nmodel = \"resnet18\"\nfit = true\n");
  expect_says(check(), 1, "did you mean fits");
  write("forerun.toml", "[guard.a]\nmodel = \"resnet1\"\nfits = true\n");
  expect_says(check(), 1, "line 1, guard a");
  write("forerun.toml", "[guard.a]\nmodel = \"resnet18\"\nslower_than_baseline = 0.1\n");
  expect_says(check(), 1, "\"10%\"");
  write("forerun.toml", "[guard.a]\nmodel = \"vgg16\"\nfits = true\ncheckpoint = \"all\"\n");
  EXPECT_EQ(check().out.find("--"), std::string::npos) << "words are no options";
  write("forerun.toml", "[guard.a]\nmodel = \"resnet18\"\nfits = false\n");
  expect_says(check(), 1, "can only be true");
  write("forerun.toml", guard_of_batch(8));
  write("forerun.lock", "<<<<<<< HEAD\n");
  expect_says(check(), 1, "forerun.lock, line 1");
}

}  // namespace
}  // namespace forerun::cli
