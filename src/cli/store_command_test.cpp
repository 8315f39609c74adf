// forerun store as users type it: a file is named, filled, listed, tagged, measured, copied; what is wrong is said.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

class StoreCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/store_command_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    store_ = folder_ + "/runs.db";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Keeps a small answer; gives its id.
  [[nodiscard]] std::string add(const std::string& model, const std::string& options = "") const {
    const Outcome outcome = outcome_of("echo '{\"schema\":\"forerun.predict/1\",\"id\":\"" + model +
                                       "\",\"gpu\":\"NVIDIA H200\",\"batch\":8,\"iter_ms\":12.5,\"fits\":true}' | " +
                                       FORERUN_PROGRAM + " store add " + store_ + " " + options + " 2>&1");
    EXPECT_EQ(outcome.code, 0) << outcome.out;
    EXPECT_EQ(outcome.out.size(), 33U) << outcome.out;
    return outcome.out.substr(0, 32);
  }
  [[nodiscard]] Outcome run(const std::string& verb, const std::string& rest = "") const {
    return forerun_outcome("store " + verb + " " + store_ + " " + rest);
  }

  std::string folder_, store_;
};

TEST_F(StoreCommand, WhatIsAddedIsListedAndShown) {
  const std::string first = add("resnet50", "--tag git=4f2a --tag best"), second = add("gpt2");
  const Outcome listed = run("list");
  EXPECT_EQ(listed.code, 0);
  EXPECT_LT(listed.out.find(second.substr(0, 12)), listed.out.find(first.substr(0, 12))) << "newest first";
  EXPECT_NE(listed.out.find("best git=4f2a"), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find("12.5 ms"), std::string::npos) << listed.out;
  EXPECT_EQ(run("list", "--tag git=4f2a --json").out.find(second), std::string::npos);
  EXPECT_NE(run("list", "--limit 1").out.find("more: --after "), std::string::npos);
  EXPECT_NE(run("list", "--model none").out.find("nothing that matches"), std::string::npos);
  EXPECT_NE(run("show", first.substr(0, 8)).out.find(R"("iter_ms":12.5)"), std::string::npos);
  EXPECT_NE(run("show", "last").out.find("gpt2"), std::string::npos);
}

TEST_F(StoreCommand, TagsMeasurementsAndDeletions) {
  const std::string id = add("resnet50");
  EXPECT_EQ(run("tag", id + " a=1 b").code, 0);
  EXPECT_NE(run("list").out.find("a=1 b"), std::string::npos);
  EXPECT_EQ(run("untag", id + " a").code, 0);
  expect_refused("store untag " + store_ + " " + id + " a", 1, "has no tag 'a'");
  EXPECT_EQ(run("measure", id + " --iter-ms 13 --machine lab").code, 0);
  expect_refused("store measure " + store_ + " " + id, 1, "--iter-ms");
  EXPECT_NE(run("show", id + " --json").out.find(R"("machine":"lab")"), std::string::npos);
  EXPECT_NE(run("info").out.find("1 results, 1 tags, 1 measurements"), std::string::npos) << run("info").out;
  EXPECT_EQ(run("delete", id).code, 0);
  expect_refused("store show " + store_ + " " + id, 1, "there is no result");
}

TEST_F(StoreCommand, ACopyIsMadeWhereThereIsNone) {
  const std::string id = add("resnet50");
  EXPECT_NE(run("copy", folder_ + "/other.db").out.find("copied 1 results"), std::string::npos);
  EXPECT_NE(forerun_outcome("store list " + folder_ + "/other.db").out.find(id.substr(0, 12)), std::string::npos);
}

TEST_F(StoreCommand, NothingIsOpenedThatIsNotAStore) {
  expect_refused("store list " + store_, 1, "is not there");
  EXPECT_FALSE(std::filesystem::exists(store_)) << "and none is made by looking";
  std::ofstream(folder_ + "/text") << std::string(2000, 'a');
  expect_refused("store list " + folder_ + "/text", 1, "no SQLite file");
  expect_refused("store list", 2, "STORE");
  expect_refused("store", 2, "subcommand");
  const std::string kept = add("resnet50");
  expect_refused("store show " + store_ + " zz", 1, "no id of a result");
  expect_refused("store list " + store_ + " --limit 0", 2, "--limit");
  expect_refused("store list " + store_ + " --after x", 1, "no place in a list");
  const Outcome secret = forerun_outcome("store list postgresql://me:secret@127.0.0.1:1/x");
  EXPECT_EQ(secret.code, 1);
  EXPECT_EQ(secret.out.find("secret"), std::string::npos) << secret.out;
  const Outcome odd =
      outcome_of("echo '{\"a\": 1}' | " + std::string(FORERUN_PROGRAM) + " store add " + store_ + " 2>&1");
  EXPECT_EQ(odd.code, 1);
  EXPECT_NE(odd.out.find("no answer of Forerun"), std::string::npos) << odd.out;
}

}  // namespace
}  // namespace forerun::cli
