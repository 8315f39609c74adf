// A question as a Slurm array, without a Slurm: tests/slurm_array_test.py has a real one.
#include "slurm/slurm_array.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace forerun {
namespace {

namespace fs = std::filesystem;
using Command = std::vector<std::string>;

class SlurmArrays : public testing::Test {
 protected:
  SlurmArrays() {
    fs::create_directories(folder_);
    array_ = {.question = {"/bin/forerun", "sweep", "my model.onnx", "--over=batch=1..4"},
              .merge = {"/bin/forerun", "sweep", "merge", "--json"},
              .name = "forerun-sweep",
              .shards = 2,
              .threads = 3,
              .options = {"partition=long", "exclusive"},
              .result = (folder_ / "out.jsonl").string()};
  }
  ~SlurmArrays() override { fs::remove_all(folder_); }
  static bool has(const Command& command, const std::string& word) {
    return std::find(command.begin(), command.end(), word) != command.end();
  }

  fs::path folder_ = fs::path(testing::TempDir()) / ("slurm_array_" + std::to_string(getpid()));
  SlurmArray array_;
};

TEST_F(SlurmArrays, WordsReachTheProgramAsTheyAre) {
  const Command array = array_command(array_);
  EXPECT_EQ(array.front(), "sbatch");
  for (const char* word : {"--array=0-1", "--partition=long", "--exclusive", "--cpus-per-task=3", "--requeue"}) {
    EXPECT_TRUE(has(array, word)) << word;
  }
  const auto script = std::find(array.begin(), array.end(), worker_script(array_).path);
  ASSERT_NE(script, array.end());
  EXPECT_EQ(Command(script + 1, array.end()), (Command{"2", array_.folder(), "/bin/forerun", "sweep", "my model.onnx",
                                                       "--over=batch=1..4", "--threads=3"}));
  const Command merge = merge_command(array_, "17");
  EXPECT_TRUE(has(merge, "--dependency=afterok:17") && has(merge, "--kill-on-invalid-dep=yes"));
  const auto behind = std::find(merge.begin(), merge.end(), merge_script(array_).path);
  ASSERT_NE(behind, merge.end());
  EXPECT_EQ(Command(behind + 1, merge.end()), (Command{"/bin/forerun", "sweep", "merge", "--json",
                                                       "--out=" + array_.result, array_.part(0), array_.part(1)}));
}

TEST_F(SlurmArrays, SubmitsBothAndTellsTheirIds) {
  std::vector<Command> commands;
  const auto jobs = submit_array(array_, [&](const Command& command) -> Result<std::string> {
    commands.push_back(command);
    return commands.size() == 1 ? std::string("41;virtual\n") : std::string("42\n");
  });
  ASSERT_TRUE(jobs) << jobs.error().message();
  EXPECT_EQ(jobs->array, "41");
  EXPECT_EQ(jobs->merge, "42");
  EXPECT_EQ(commands, (std::vector<Command>{array_command(array_), merge_command(array_, "41")}));
  std::ifstream script(worker_script(array_).path);
  std::stringstream text;
  text << script.rdbuf();
  EXPECT_TRUE(text.str().starts_with("#!/bin/sh\n"));
}

TEST_F(SlurmArrays, TheArrayIsCancelledWhereTheMergeCannotBeSubmitted) {
  std::vector<Command> commands;
  const auto jobs = submit_array(array_, [&](const Command& command) -> Result<std::string> {
    commands.push_back(command);
    if (commands.size() == 2) return Error{"no such partition", "sbatch", ""};
    return std::string("41");
  });
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().what, "no such partition");
  EXPECT_EQ(commands.back(), (Command{"scancel", "41"}));
  EXPECT_FALSE(submit_array(array_, [](const Command&) -> Result<std::string> { return std::string("welcome"); }));
}

TEST_F(SlurmArrays, OptionsThatWouldChangeWhatIsSubmittedAreRefused) {
  for (const char* option :
       {"array=0-9", "dependency=singleton", "parsable", "wrap=ls", "--time=5", "", "=x", "Time=5", "a b"}) {
    array_.options = {option};
    EXPECT_FALSE(check_array(array_).ok()) << option;
  }
  array_.options = {"time=5", "gres=gpu:1", "nodelist=a[1-3]"};
  EXPECT_TRUE(check_array(array_).ok());
  array_.result = "/tmp/100%.jsonl";
  EXPECT_FALSE(check_array(array_).ok());
}

// The script itself, with a worker that is killed before it gets done.
TEST_F(SlurmArrays, AKilledWorkerIsStartedAgainAndOneThatEndsIsNot) {
  const std::string script = (folder_ / "shard.sh").string(), worker = (folder_ / "worker").string();
  const std::string log = (folder_ / "log").string();
  std::ofstream(script) << worker_script(array_).text;
  const auto tries = [&](const std::string& ending) {
    std::ofstream(worker) << "#!/bin/sh\necho \"$*\" >> " << log << "\n" << ending << "\n";
    fs::permissions(worker, fs::perms::owner_all);
    fs::remove(log);
    const int code =
        std::system(("SLURM_ARRAY_TASK_ID=1 sh " + script + " 2 /parts " + worker + " 'a b' 2> /dev/null").c_str());
    std::ifstream lines(log);
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      EXPECT_EQ(line, "a b --shard 1/2 --out /parts/part-1.jsonl");
    }
    return std::pair(count, WEXITSTATUS(code));
  };
  EXPECT_EQ(tries("exit 0"), std::pair(1, 0));
  EXPECT_EQ(tries("exit 1"), std::pair(1, 1));
  EXPECT_EQ(tries("kill -9 $$"), std::pair(3, 137));
  EXPECT_EQ(tries("[ $(wc -l < " + log + ") -lt 2 ] && kill -9 $$; exit 0"), std::pair(2, 0));
}

}  // namespace
}  // namespace forerun
