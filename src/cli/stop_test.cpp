// What Ctrl-C, --time-limit and --memory-limit do to verbs that take long: a word, the right exit code, and no file that is
// not whole.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

namespace fs = std::filesystem;

const std::string kStoppedProgram = FORERUN_PROGRAM;
const std::string kMany = " --over batch=1..100000 --threads 1";

// The program, sent SIGINT as soon as a shell's test says that it is at work; what it said on standard error, and its exit
// code. A shell lets what it runs in the background ignore the signal, which `env` takes back.
Outcome interrupted(const std::string& arguments, const std::string& at_work, const std::string& errors) {
  return outcome_of("env --default-signal=INT " + kStoppedProgram + " " + arguments + " 2> " + errors +
                    " & p=$!; for i in $(seq 600); do " + at_work +
                    " && break; sleep 0.05; done; kill -INT $p; wait $p; code=$?; cat " + errors + "; rm " + errors +
                    "; exit $code");
}

class Stopping : public testing::Test {
 protected:
  Stopping() : folder_(fs::temp_directory_path() / ("forerun_stop_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Stopping() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(Stopping, CtrlCEndsLongWorkWithAWordAnd130) {
  const std::string rows = (folder_ / "rows").string();
  for (const char* verb : {"sweep resnet18 --csv", "sweep resnet18 --json"}) {
    const Outcome outcome = interrupted(verb + kMany + " > " + rows, "[ -s " + rows + " ]", rows + ".errors");
    EXPECT_EQ(outcome.code, 130) << outcome.out;
    EXPECT_NE(outcome.out.find("forerun: stopped after"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("of 100000 configurations"), std::string::npos) << outcome.out;
    fs::remove(rows);
  }
}

TEST_F(Stopping, AShardKeepsWhatItHasDone) {
  const std::string part = (folder_ / "part").string();
  const Outcome outcome = interrupted("sweep resnet18 --out " + part + kMany,
                                      "[ -s " + part + " ] && [ $(wc -l < " + part + ") -ge 3 ]", part + ".errors");
  EXPECT_EQ(outcome.code, 130) << outcome.out;
  EXPECT_NE(outcome.out.find("of 100000 configurations"), std::string::npos) << outcome.out;
  std::ifstream lines(part);
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) EXPECT_TRUE(line.ends_with('}')) << line;
  EXPECT_GE(cases, 3);
}

TEST_F(Stopping, LeavesNoHalfWrittenFile) {
  // gzip writes as it goes, for some seconds; Zstandard with its large window would write all at the end.
  const std::string out = (folder_ / "all.jsonl.gz").string();
  const Outcome outcome = interrupted("data merge " + out + " " FORERUN_SOURCE_DIR "/data/h200/runs-1.jsonl.zst",
                                      "find " + folder_.string() + " -name '*.partial*' -size +0 | grep -q .",
                                      (folder_ / "errors").string());
  EXPECT_EQ(outcome.code, 130) << outcome.out;
  EXPECT_NE(outcome.out.find("forerun: stopped after"), std::string::npos) << outcome.out;
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Stopping, LimitsGiveUpWithTheirName) {
  const Outcome late = forerun_outcome("sweep resnet18" + kMany + " --time-limit 0.5");
  EXPECT_EQ(late.code, 1) << late.out;
  EXPECT_NE(late.out.find("the time limit of 0.5 s was reached after"), std::string::npos) << late.out;
  const Outcome large = forerun_outcome("fit resnet18 --memory-limit 1MiB");
  EXPECT_EQ(large.code, 1) << large.out;
  EXPECT_NE(large.out.find("the memory limit of 0.000977 GiB was reached"), std::string::npos) << large.out;
  const Outcome enough = forerun_outcome("predict resnet18 --batch 2 --time-limit 600 --memory-limit 64GiB");
  EXPECT_EQ(enough.code, 0) << enough.out;
}

TEST_F(Stopping, LimitsThatAreNoneAreRefused) {
  for (const char* limit : {"--time-limit 0", "--time-limit -1", "--time-limit nan", "--time-limit 1e999",
                            "--time-limit soon", "--memory-limit 5", "--memory-limit -1GiB", "--memory-limit nanGiB",
                            "--memory-limit 1e30GiB", "--memory-limit GiB"}) {
    const Outcome outcome = forerun_outcome(std::string("predict resnet18 --batch 2 ") + limit);
    EXPECT_EQ(outcome.code, 2) << limit << "\n" << outcome.out;
    EXPECT_NE(outcome.out.find("-limit"), std::string::npos) << outcome.out;
  }
}

}  // namespace
}  // namespace forerun::cli
