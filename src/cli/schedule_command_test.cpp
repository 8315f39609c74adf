// `forerun schedule` as a user meets it: what it prints and what it exits with.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

using nlohmann::json;

Outcome schedule(const std::string& arguments) { return forerun_outcome("schedule " + arguments); }

class ScheduleCommand : public testing::Test {
 protected:
  ScheduleCommand() : path_(std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_jobs.csv")) {
    std::ofstream(path_) << "id,submit,gpus,duration,deadline\n"
                            "long,0,1,100,\n"
                            "wide,1,2,10,50\n"
                            "short,2,1,5,\n";
  }
  ~ScheduleCommand() override { std::filesystem::remove(path_); }
  std::filesystem::path path_;
};

TEST_F(ScheduleCommand, GivesTheFiguresOutsideChecksUse) {
  const Outcome outcome = schedule(path_.string() + " --gpus 2 --policy fifo --json");
  ASSERT_EQ(outcome.code, 0) << outcome.out;
  const json answer = json::parse(outcome.out);
  EXPECT_EQ(answer["jobs"], 3);
  EXPECT_DOUBLE_EQ(answer["mean_jct"].get<double>(), (100.0 + 109 + 113) / 3);
  EXPECT_DOUBLE_EQ(answer["median_jct"].get<double>(), 109);
  EXPECT_DOUBLE_EQ(answer["mean_wait"].get<double>(), (0.0 + 99 + 108) / 3);
  EXPECT_DOUBLE_EQ(answer["makespan"].get<double>(), 115);
  EXPECT_EQ(answer["late"], 1);
  EXPECT_DOUBLE_EQ(answer["total_tardiness"].get<double>(), 60);
  EXPECT_DOUBLE_EQ(answer["utilisation"].get<double>(), (100.0 + 20 + 5) / 230);
}

TEST_F(ScheduleCommand, ComparesPoliciesInATable) {
  const Outcome text = schedule(path_.string() + " --gpus 2 --compare fifo fifo-skip easy");
  EXPECT_EQ(text.code, 0) << text.out;
  EXPECT_NE(text.out.find("fifo-skip"), std::string::npos);
  const json list = json::parse(schedule(path_.string() + " --gpus 2 --compare fifo easy --json").out);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_LT(list[1]["mean_jct"], list[0]["mean_jct"]);  // the short job fills the gap
}

TEST_F(ScheduleCommand, RepeatsOverSeedsAgainstPerfectKnowledge) {
  const Outcome outcome = schedule(
      path_.string() + " --gpus 1 --max-gpus 1 --policy srtf --predictor error:500 --repeat 20 --threads 2 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.out;
  const json answer = json::parse(outcome.out);
  EXPECT_EQ(answer["runs"], 20);
  EXPECT_TRUE(answer.contains("loss_against_perfect"));
  EXPECT_GT(answer["mean_jct_half_width"], 0);
  EXPECT_EQ(answer["half_widths"]["mean_jct"], answer["mean_jct_half_width"]);
  EXPECT_EQ(answer["half_widths"]["makespan"], 0);  // one after the other, in any order
}

TEST_F(ScheduleCommand, SaysWhereMeasuredErrorsComeFrom) {
  for (const std::string name : {"hybrid", "error-like:ets", "error-like:dnnperf"}) {
    const Outcome outcome = schedule(path_.string() + " --gpus 2 --policy sjf --predictor " + name + " --json");
    ASSERT_EQ(outcome.code, 0) << outcome.out;
    const std::string source = json::parse(outcome.out)["predictor_source"];
    EXPECT_NE(source.find("data/evaluations/h200.json"), std::string::npos) << source;
    EXPECT_NE(source.find("mean error"), std::string::npos) << source;
  }
  const Outcome unknown = schedule(path_.string() + " --gpus 2 --policy sjf --predictor hybird");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.out.find("did you mean hybrid"), std::string::npos) << unknown.out;
}

std::string table_text(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_F(ScheduleCommand, WritesATableOfTheJobs) {
  std::ofstream(path_) << "id,submit,gpus,duration,deadline,user,group,model\n"
                          "long,0,1,100,,ann,vision,=SUM(A1)\n"
                          "wide,1.5,2,10,50,ben,,\n";
  const auto table = std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_out.csv");
  const Outcome outcome = schedule(path_.string() + " --gpus 2 --compare fifo srtf --jobs-out " + table.string());
  ASSERT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_EQ(
      table_text(table),
      "policy,id,user,group,model,gpus,gpu_type,submit,start,end,wait,run,jct,preemptions,failures,predicted,duration,"
      "slowdown,deadline,late_by,finished\n"
      "fifo,long,ann,vision,'=SUM(A1),1,gpu,0,0,100,0,100,100,0,0,100,100,1,,,yes\n"
      "fifo,wide,ben,,,2,gpu,1.5,100,110,98.5,10,108.5,0,0,10,10,10.85,50,60,yes\n"
      "srtf,long,ann,vision,'=SUM(A1),1,gpu,0,0,110,10,100,110,1,0,100,100,1.1,,,yes\n"
      "srtf,wide,ben,,,2,gpu,1.5,1.5,11.5,0,10,10,0,0,10,10,1,50,0,yes\n");
  std::filesystem::remove(table);
  EXPECT_EQ(schedule(path_.string() + " --gpus 2 --policy fifo --jobs-out /nowhere/out.csv").code, 1);
}

TEST_F(ScheduleCommand, BreaksFiguresDownByUserGroupAndSize) {
  std::ofstream(path_) << "id,submit,gpus,duration,user\n"
                          "a,0,1,100,ann\nb,0,1,50,\nc,0,4,10,ann\nd,0,3,30,ben\n";
  const Outcome outcome = schedule(path_.string() + " --gpus 4 --policy fifo --by user size --json");
  ASSERT_EQ(outcome.code, 0) << outcome.out;
  const json answer = json::parse(outcome.out);
  const json& users = answer["by_user"];
  ASSERT_EQ(users.size(), 3U);
  EXPECT_EQ(users[0]["name"], "ann");
  EXPECT_DOUBLE_EQ(users[0]["mean_jct"], (100.0 + 110) / 2);
  EXPECT_DOUBLE_EQ(users[0]["mean_wait"], (0.0 + 100) / 2);
  EXPECT_EQ(users[1]["name"], "ben");
  EXPECT_EQ(users[2]["name"], "");
  EXPECT_DOUBLE_EQ(users[2]["mean_slowdown"], 1);
  const json& sizes = answer["by_size"];
  ASSERT_EQ(sizes.size(), 2U);
  EXPECT_EQ(sizes[0]["name"], "1");
  EXPECT_EQ(sizes[0]["jobs"], 2);
  EXPECT_EQ(sizes[1]["name"], "3-4");
  EXPECT_DOUBLE_EQ(sizes[1]["mean_jct"], (110.0 + 140) / 2);
  const Outcome text = schedule(path_.string() + " --gpus 4 --compare fifo sjf --by user");
  EXPECT_NE(text.out.find("(none)"), std::string::npos) << text.out;
  EXPECT_NE(schedule(path_.string() + " --gpus 4 --policy fifo --by usr").out.find("did you mean user"),
            std::string::npos);
  EXPECT_EQ(
      json::parse(schedule(path_.string() + " --gpus 4 --policy sjf --predictor error:50 --repeat 5 --by group --json")
                      .out)["by_group"][0]["jobs"],
      4);
}

TEST_F(ScheduleCommand, HoldsJobsToQuotasAndDependencies) {
  std::ofstream(path_) << "id,submit,gpus,duration,user,after\n"
                          "a,0,1,100,ann,\nb,0,1,50,ann,\nc,0,1,10,ben,\nd,0,1,10,ben,b\n";
  const auto makespan = [&](const std::string& options) {
    const Outcome outcome = schedule(path_.string() + " --gpus 4 --policy fifo --json" + options);
    EXPECT_EQ(outcome.code, 0) << outcome.out;
    return json::parse(outcome.out)["makespan"].get<double>();
  };
  EXPECT_DOUBLE_EQ(makespan(""), 100);
  EXPECT_DOUBLE_EQ(makespan(" --quota user=1"), 160);  // b behind a, and d behind b
  EXPECT_DOUBLE_EQ(makespan(" --quota user=1 user:ann=2"), 100);
  EXPECT_NE(schedule(path_.string() + " --gpus 4 --policy fifo --quota user=0").out.find("the quota of its user is 0"),
            std::string::npos);
  EXPECT_EQ(schedule(path_.string() + " --gpus 4 --policy fifo --quota many").code, 1);
}

TEST_F(ScheduleCommand, TakesUsersLimitsForPredictions) {
  EXPECT_NE(
      schedule(path_.string() + " --gpus 2 --policy sjf --predictor limits").out.find("no job states a time limit"),
      std::string::npos);
  std::ofstream(path_) << "id,duration,limit\na,100,120\nb,50,3600\nc,10,\n";
  const Outcome outcome = schedule(path_.string() + " --gpus 1 --policy sjf --predictor limits --json");
  ASSERT_EQ(outcome.code, 0) << outcome.out;
  const json answer = json::parse(outcome.out);
  EXPECT_DOUBLE_EQ(answer["mean_jct"], (100 + 150 + 160) / 3.0);
  EXPECT_EQ(answer["predictor_source"], "2 of 3 jobs state a time limit; the others: the longest of them");
}

TEST_F(ScheduleCommand, DrawsAPicture) {
  const auto picture = std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_schedule.svg");
  const Outcome outcome = schedule(path_.string() + " --gpus 2 --compare fifo srtf --svg " + picture.string());
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  std::stringstream text;
  text << std::ifstream(picture).rdbuf();
  std::filesystem::remove(picture);
  EXPECT_EQ(text.str().find("<svg"), 0U);
  EXPECT_NE(text.str().find("</svg>"), std::string::npos);
}

TEST_F(ScheduleCommand, DrawsJobsWhoseNamesLookLikeMarkup) {
  std::ofstream(path_) << "id,duration\n<script>,10\na&b,20\n";
  const Outcome outcome = schedule(path_.string() + " --gpus 2 --policy fifo --svg /dev/stdout");
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_NE(outcome.out.find("&lt;script&gt;"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("a&amp;b"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("<script>"), std::string::npos) << outcome.out;
}

TEST_F(ScheduleCommand, AnswersFaultsWithFileLineAndRemedy) {
  const Outcome large = schedule(path_.string() + " --gpus 1 --policy fifo");
  EXPECT_EQ(large.code, 1);
  EXPECT_NE(large.out.find("_jobs.csv:3: job 'wide' asks for 2 GPUs"), std::string::npos) << large.out;
  const Outcome lenient = schedule(path_.string() + " --gpus 1 --policy fifo --lenient --json");
  EXPECT_EQ(lenient.code, 0) << lenient.out;
  EXPECT_EQ(json::parse(lenient.out)["rows_left_out"]["larger than the cluster"], 1);
  EXPECT_NE(schedule(path_.string() + " --gpus 2 --policy fiffo").out.find("did you mean fifo"), std::string::npos);
  EXPECT_NE(schedule(path_.string() + " --gpus x --policy fifo").out.find("no number of GPUs"), std::string::npos);
  EXPECT_NE(schedule(path_.string() + " --policy fifo").out.find("--gpus"), std::string::npos);
  EXPECT_EQ(schedule("/nowhere.csv --gpus 2 --policy fifo").code, 1);
}

TEST_F(ScheduleCommand, RefusesWhatIsNoNumberOrOutOfRange) {
  for (const char* option : {"--failure-hours nan",
                             "--failure-hours inf",
                             "--failure-hours -1",
                             "--failure-hours 5 --repair-hours nan",
                             "--failure-hours 5 --repair-hours 1e9",
                             "--failure-hours 5 --checkpoint -1",
                             "--repair-hours 2",
                             "--checkpoint 60",
                             "--restart-cost nan",
                             "--restart-cost -1",
                             "--nodes-per-rack 2",
                             "--node-loss 0.1",
                             "--gpus-per-node 2 --node-loss nan",
                             "--gpus-per-node 2 --rack-loss 0.1",
                             "--gpus-per-node 2 --oversubscription 2",
                             "--seed -1",
                             "--repeat 0",
                             "--predictor limits:0.5",
                             "--predictor error:nan",
                             "--first 0",
                             "--max-gpus -1"}) {
    const Outcome outcome = schedule(path_.string() + " --gpus 2 --policy fifo " + option);
    EXPECT_NE(outcome.code, 0) << option << ": " << outcome.out;
  }
  const Outcome endless = schedule(path_.string() + " --gpus 2 --policy fifo --failure-hours 1e-9");
  EXPECT_EQ(endless.code, 1) << endless.out;
  EXPECT_NE(endless.out.find("--failure-hours"), std::string::npos) << endless.out;
}

TEST_F(ScheduleCommand, RefusesTimesBeyondTheClock) {
  std::ofstream(path_) << "duration\n4e9\n4e9\n4e9\n";
  const Outcome outcome = schedule(path_.string() + " --gpus 1 --policy fifo");
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  EXPECT_NE(outcome.out.find("292 simulated years"), std::string::npos) << outcome.out;
  EXPECT_EQ(schedule(path_.string() + " --gpus 3 --policy fifo").code, 0);
}

TEST_F(ScheduleCommand, PrioritiesCountOrAreRefused) {
  std::ofstream(path_) << "id,submit,gpus,duration,priority,note\na,0,8,100,0,\nb,1,8,100,0,\nc,2,8,50,100,x\n";
  const json answer = json::parse(schedule(path_.string() + " --gpus 8 --policy fifo --json").out);
  EXPECT_DOUBLE_EQ(answer["mean_jct"].get<double>(), (100.0 + 249 + 148) / 3);
  EXPECT_EQ(answer["columns_not_used"], json({"note"}));
  const Outcome refused = schedule(path_.string() + " --gpus 8 --policy srtf");
  EXPECT_EQ(refused.code, 1) << refused.out;
  EXPECT_NE(refused.out.find("job 'c' has a priority"), std::string::npos) << refused.out;
}

TEST(ScheduleCommandWithoutFile, MakesJobsUp) {
  const std::string arguments = "--synthetic jobs=2000,gpus=64,seed=3 --policy srtf --json";
  const Outcome once = schedule(arguments);
  ASSERT_EQ(once.code, 0) << once.out;
  EXPECT_EQ(json::parse(once.out)["jobs"], 2000);
  EXPECT_EQ(once.out, schedule(arguments).out);
  const std::string list = schedule("--list").out;
  for (const char* name : {"srsf-skip", "jobcomp", "records", "hybrid"}) {
    EXPECT_NE(list.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace forerun::cli
