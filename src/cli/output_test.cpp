// Answers that cannot be written: the program says so, exits with 1, and leaves earlier files as they were.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

namespace fs = std::filesystem;

const std::string kProgram = FORERUN_PROGRAM;

// With standard error in the place of standard output.
Outcome told(const std::string& arguments, const std::string& redirected) {
  return outcome_of(kProgram + " " + arguments + " 2>&1 " + redirected);
}

TEST(StandardOutput, IsNotLostInSilence) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  for (const char* arguments :
       {"predict resnet18 --batch 2", "predict resnet18 --batch 2 --json", "--help", "--version", "zoo", "devices",
        "fit --help", "sweep resnet18 --over batch=1,2", "train", "schedule --list", "monitor -- true"}) {
    for (const char* redirected : {"> /dev/full", ">&-"}) {
      const Outcome outcome = told(arguments, redirected);
      EXPECT_EQ(outcome.code, 1) << arguments << redirected;
      EXPECT_NE(outcome.out.find("forerun: standard output cannot be written: "), std::string::npos)
          << arguments << redirected << outcome.out;
      EXPECT_EQ(outcome.out.find("cannot be"), outcome.out.rfind("cannot be")) << "once: " << outcome.out;
    }
  }
  EXPECT_EQ(told("monitor -- sh -c 'exit 5'", "> /dev/full").code, 5) << "the command's code is passed on";
  EXPECT_EQ(told("predict nosuch", "> /dev/full").code, 1);
}

TEST(StandardOutput, NeedNotBeThereWhereNothingIsSaid) {
  EXPECT_EQ(outcome_of(kProgram + " predict nosuch >&- 2>&-").code, 1);
  EXPECT_EQ(outcome_of(kProgram + " predict resnet18 --batch 2 2>&-").code, 0);
  EXPECT_EQ(outcome_of(kProgram + " predict resnet18 --batch 2 <&-").code, 0);
  if (fs::exists("/dev/full")) {
    EXPECT_EQ(outcome_of(kProgram + " predict nosuch 2> /dev/full").code, 1);
  }
}

TEST(StandardOutput, EndsQuietlyWithItsReader) {
  const Outcome outcome =
      outcome_of("bash -c 'set -o pipefail; { sleep 0.2; exec " + kProgram + " zoo; } 2>&3 | true' 3>&1");
  EXPECT_EQ(outcome.code, 128 + 13) << "SIGPIPE ends it";
  EXPECT_EQ(outcome.out, "");
}

class OutputFileCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / (std::to_string(getpid()) + "_output_" + test->name());
    fs::create_directories(folder_);
    std::ofstream(folder_ / "jobs.csv") << "id,submit,gpus,duration\na,0,1,100\nb,5,2,300\n";
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string contents(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // Runs `forerun ARGUMENTS` in the folder with a limit on the size of files, in kibibytes: as on a full disk.
  [[nodiscard]] Outcome limited(const std::string& arguments, int kibibytes) const {
    return outcome_of("cd " + folder_.string() + " && bash -c 'ulimit -f " + std::to_string(kibibytes) + "; " +
                      kProgram + " " + arguments + "' 2>&1");
  }
  fs::path folder_;
};

TEST_F(OutputFileCommands, AFullDiskLeavesTheEarlierFile) {
  std::string jobs = "id,submit,gpus,duration\n";
  for (int i = 0; i < 200; ++i) jobs += std::to_string(i) + "," + std::to_string(i) + ",1,100\n";
  std::ofstream(folder_ / "jobs.csv") << jobs;
  for (const std::string command :
       {"predict resnet18 --batch 2 --memory-svg out", "predict resnet18 --batch 2 --memory-chrome out",
        "predict resnet18 --batch 2 --memory-snapshot out", "schedule jobs.csv --gpus 4 --policy fifo --svg out",
        "scale resnet18 --gpus 1,2,4,8 --svg out", "monitor --seconds 0.2 --hz 500 --svg out"}) {
    std::ofstream(folder_ / "out") << "earlier";
    const Outcome outcome = limited(command, 1);
    EXPECT_EQ(outcome.code, 1) << command << outcome.out;
    EXPECT_NE(outcome.out.find("forerun: out: cannot be written: File too large; make free space"), std::string::npos)
        << command << outcome.out;
    EXPECT_EQ(contents("out"), "earlier") << command;
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2) << command << ": something is left behind";
    const Outcome enough = limited(command, 100'000);
    EXPECT_EQ(enough.code, 0) << command << enough.out;
    EXPECT_GT(contents("out").size(), 1024u) << command;
  }
}

TEST_F(OutputFileCommands, AMissingFolderIsNamed) {
  const Outcome outcome = forerun_outcome("predict resnet18 --batch 2 --memory-svg /no/such/x.svg");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("/no/such/x.svg: cannot be created: No such file or directory; name a file in a folder"),
            std::string::npos)
      << outcome.out;
}

TEST_F(OutputFileCommands, APictureMayGoToStandardOutput) {
  const Outcome outcome = outcome_of("cd " + folder_.string() + " && " + kProgram +
                                     " schedule jobs.csv --gpus 4 --policy fifo --svg /dev/stdout > both 2>&1");
  EXPECT_EQ(outcome.code, 0);
  const std::string both = contents("both");
  EXPECT_NE(both.find("</svg>"), std::string::npos);
  EXPECT_LT(both.find("</svg>"), both.rfind("fifo")) << "neither overwrites the other";
}

// While it waits for the rest of its input, a merge has begun to write.
TEST_F(OutputFileCommands, ASignalLeavesNothingUnfinished) {
  const Outcome outcome = outcome_of("cd " + folder_.string() + " && mkfifo in.jsonl && { " + kProgram +
                                     " data merge out.jsonl in.jsonl & } && " +
                                     "exec 3<> in.jsonl && until ls out.jsonl.partial* > /dev/null 2>&1; do sleep "
                                     "0.01; done; kill -TERM $!; wait $!; " +
                                     "code=$?; ls; exit $code");
  EXPECT_EQ(outcome.code, 143) << outcome.out;
  EXPECT_EQ(outcome.out, "in.jsonl\njobs.csv\n");
}

TEST_F(OutputFileCommands, FewerThreadsGiveTheSameAnswer) {
  const std::string sweep = " sweep resnet18 --over batch=1..60 --csv";
  const Outcome plenty = outcome_of(kProgram + sweep + " --threads 1");
  const Outcome few = outcome_of("bash -c 'ulimit -v 1500000; " + kProgram + sweep + " --threads 1000' 2>&1");
  EXPECT_EQ(few.code, 0) << few.out;
  EXPECT_EQ(few.out, plenty.out);
  const std::string schedule =
      " schedule --synthetic jobs=50,gpus=8 --policy fifo --predictor error:10 --repeat 100 --json";
  const Outcome one = outcome_of("cd " + folder_.string() + " && " + kProgram + schedule);
  const Outcome many = outcome_of("cd " + folder_.string() + " && bash -c 'ulimit -v 700000; " + kProgram + schedule +
                                  " --threads 256' 2>&1");
  EXPECT_EQ(many.code, 0) << many.out;
  EXPECT_EQ(many.out, one.out);
}

}  // namespace
}  // namespace forerun::cli
