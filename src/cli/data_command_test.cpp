// `forerun data` as a user meets it: what it prints, where, and what it exits with.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ingest/capture/test_records.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class DataCommand : public ::testing::Test {
 protected:
  struct Outcome {
    int code = -1;
    std::string out;
    std::string err;
  };

  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) / ("data_command_" + std::to_string(getpid())) / test->name();
    fs::create_directories(folder_ / "set");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  [[nodiscard]] std::string contents(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  // Runs `forerun data ARGUMENTS` in the folder.
  Outcome data(const std::string& arguments) const {
    const std::string command =
        "cd " + folder_.string() + " && " + FORERUN_PROGRAM + " data " + arguments + " 2> standard_error";
    Outcome outcome;
    FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return outcome;
    std::array<char, 4096> buffer{};
    while (const size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) outcome.out.append(buffer.data(), count);
    outcome.code = WEXITSTATUS(pclose(pipe));
    outcome.err = contents("standard_error");
    return outcome;
  }

  fs::path folder_;
};

TEST_F(DataCommand, SummarizesListsAndChecks) {
  write("set/a.jsonl", small_record_2().dump() + "\n" + small_sample().dump() + "\n");
  write("set/b.jsonl", small_record().dump() + "\n");
  const Outcome text = data("summary set");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("2 iteration records of 1 families and 1 op samples in 2 files"), std::string::npos)
      << text.out;
  EXPECT_EQ(json::parse(data("summary set --json").out)["runs"]["records"], 2);

  const Outcome list = data("list set");
  EXPECT_EQ(std::count(list.out.begin(), list.out.end(), '\n'), 3);
  const Outcome rows = data("list set --json");
  std::istringstream lines(rows.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(json::parse(line)["id"], "hand/00002");
  EXPECT_EQ(json::parse(line)["iter_ms"], 1.5);
  EXPECT_TRUE(data("list set --csv").out.starts_with("id,family,"));

  const Outcome check = data("check set");
  EXPECT_EQ(check.code, 0);
  EXPECT_EQ(check.out, "2 iteration records and 1 op samples are good, no records are broken\n");
}

TEST_F(DataCommand, SaysWhichRecordIsBroken) {
  json broken = small_record_2();
  broken["ops"]["phase"] = "fb";
  write("set/a.jsonl", broken.dump() + "\n" + small_record_2().dump().substr(0, 500));
  const Outcome check = data("check set");
  EXPECT_EQ(check.code, 1);
  EXPECT_NE(check.out.find("set/a.jsonl, record 1 (hand/00002): ops: column phase has 2 entries"), std::string::npos)
      << check.out;
  EXPECT_NE(check.out.find("warning: set/a.jsonl, record 2: the last line is torn"), std::string::npos) << check.out;
  std::istringstream lines(data("check set --json").out);
  std::vector<std::string> kinds;
  for (std::string line; std::getline(lines, line);) kinds.push_back(json::parse(line)["kind"]);
  EXPECT_EQ(kinds, (std::vector<std::string>{"broken", "torn", "result"}));

  const Outcome list = data("summary set");
  EXPECT_EQ(list.code, 0) << "the columns of ops are not looked at to count: " << list.err;
  EXPECT_NE(list.err.find("torn"), std::string::npos);

  write("set/a.jsonl", small_record_2().dump().substr(0, 500));
  const Outcome torn = data("check set");
  EXPECT_EQ(torn.code, 1);
  EXPECT_NE(torn.out.find("set/a.jsonl: holds no records"), std::string::npos) << torn.out;
  // What never was a record is not a torn one, whether its last line has an end or not.
  write("set/a.jsonl", "once upon a time");
  const Outcome text = data("check set");
  EXPECT_EQ(text.code, 1);
  EXPECT_EQ(text.out.find("torn"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("set/a.jsonl"), std::string::npos) << text.out;
  write("set/a.jsonl", small_record_2().dump() + "\n" + small_record_2().dump().substr(0, 500));
  EXPECT_EQ(data("check set").code, 0) << "a torn line beside a whole one is no fault";
}

TEST_F(DataCommand, MergesAndExports) {
  write("set/a.jsonl", small_record().dump() + "\n" + small_sample().dump() + "\n");
  write("set/b.jsonl", small_record().dump() + "\n");
  const Outcome merged = data("merge out.jsonl.zst set --compact");
  EXPECT_EQ(merged.code, 0) << merged.err;
  EXPECT_EQ(merged.out,
            "out.jsonl.zst: 1 iteration records and 1 op samples; 1 repeated ids were left out; 2 records were "
            "packed\n");
  EXPECT_TRUE(merged.err.empty()) << "progress is for terminals: " << merged.err;
  EXPECT_EQ(contents("out.jsonl.zst").substr(0, 4), "\x28\xb5\x2f\xfd");
  const Outcome again = data("merge out.jsonl.zst set");
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.err.find("--force"), std::string::npos) << again.err;
  EXPECT_EQ(json::parse(data("merge out.jsonl.zst set --force --json").out)["repeats"], 1);

  EXPECT_EQ(data("export out.jsonl.zst --csv runs.csv").code, 0);
  EXPECT_TRUE(contents("runs.csv").starts_with("id,family,args,"));
  EXPECT_EQ(data("export out.jsonl.zst --csv runs.csv").code, 1) << "it is there already";
  const Outcome ops = data("export out.jsonl.zst --what ops --csv -");
  EXPECT_EQ(std::count(ops.out.begin(), ops.out.end(), '\n'), 4);
}

TEST_F(DataCommand, SaysWhereThereIsNothing) {
  write("set/a.jsonl", "\n");
  for (const char* arguments : {"check set", "summary set", "noise set", "list set", "merge out.jsonl set",
                                "export set --csv out.csv", "export set --csv -", "check /dev/null"}) {
    const Outcome outcome = data(arguments);
    EXPECT_EQ(outcome.code, 1) << arguments;
    EXPECT_NE((outcome.out + outcome.err).find("holds no "), std::string::npos) << arguments << outcome.err;
  }
  EXPECT_FALSE(fs::exists(folder_ / "out.jsonl"));
  EXPECT_FALSE(fs::exists(folder_ / "out.csv"));
  write("set/b.jsonl", "{}\n" + small_record_2().dump() + "\n");
  const Outcome merged = data("merge out.jsonl set");
  EXPECT_EQ(merged.code, 1) << "a record was left out";
  EXPECT_NE(merged.err.find("set/b.jsonl, record 1: "), std::string::npos) << merged.err;
  EXPECT_EQ(data("check out.jsonl").code, 0);
}

TEST_F(DataCommand, AnswersWrongCallsWithWhatToDo) {
  EXPECT_EQ(data("").code, 2);
  EXPECT_EQ(data("sumary x").code, 2);
  EXPECT_EQ(data("merge out.jsonl").code, 2);
  EXPECT_EQ(data("export set --csv x --what nonsense").code, 2);
  const Outcome missing = data("summary no/such/folder");
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.err.find("no/such/folder"), std::string::npos);
  const Outcome empty = data("check set");
  EXPECT_EQ(empty.code, 1);
  EXPECT_NE(empty.err.find(".jsonl.zst"), std::string::npos) << empty.err;
  EXPECT_NE(data("--help").out.find("forerun data merge"), std::string::npos);
  EXPECT_NE(data("check --help").out.find("Exit code 1"), std::string::npos);
}

}  // namespace
}  // namespace forerun
