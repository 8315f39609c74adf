// `forerun trace` as a user meets it: what it prints and what it exits with.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

using nlohmann::json;

Outcome trace(const std::string& arguments, bool errors = false) {
  if (errors) return forerun_outcome("trace " + arguments);
  return outcome_of(std::string(FORERUN_PROGRAM) + " trace " + arguments + " 2>/dev/null");
}

class TraceCommand : public testing::Test {
 protected:
  TraceCommand() : folder_(std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_trace_command")) {
    std::filesystem::create_directories(folder_);
  }
  ~TraceCommand() override { std::filesystem::remove_all(folder_); }

  // Two steps of one kernel each.
  std::string file(const std::string& name, int kernel_us) {
    json events = json::array();
    const auto add = [&](const char* category, const std::string& what, int pid, int start, int duration, json args) {
      events.push_back({{"ph", "X"},
                        {"cat", category},
                        {"name", what},
                        {"pid", pid},
                        {"tid", pid == 0 ? 7 : 1},
                        {"ts", start},
                        {"dur", duration},
                        {"args", std::move(args)}});
    };
    for (int step = 0; step < 2; ++step) {
      const int at = 1000 * step;
      add("user_annotation", "ProfilerStep#" + std::to_string(step), 1, at, 1000, json::object());
      add("cpu_op", "aten::mm", 1, at + 10, 50, json::object());
      add("cuda_runtime", "cudaLaunchKernel", 1, at + 20, 10, {{"correlation", step + 1}});
      add("kernel", "gemm", 0, at + 40, kernel_us, {{"device", 0}, {"stream", 7}, {"correlation", step + 1}});
    }
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << json{
        {"distributedInfo", {{"backend", "nccl"}, {"rank", 0}, {"world_size", 2}}},
        {"traceEvents",
         events}}.dump();
    return path;
  }
  std::filesystem::path folder_;
};

TEST_F(TraceCommand, PrintsTextJsonAndCsv) {
  const std::string path = file("a.json", 100);
  const Outcome text = trace(path);
  EXPECT_EQ(text.code, 0);
  for (const char* part : {"events read 8", "linked to a launch 2 (100.0 %)", "iterations 2", "host wait", "gemm",
                           "critical path", "if twice as fast"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  }
  const Outcome one = trace("--json " + path);
  const json report = json::parse(one.out, nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << one.out;
  EXPECT_EQ(report["files"][0]["devices"][0]["compute_us"], 200.0);
  EXPECT_EQ(report["files"][0]["devices"][0]["idle_causes"]["host_wait_us"], 900.0);
  EXPECT_EQ(report["files"][0]["linked_share"], 1.0);
  EXPECT_EQ(json::parse(trace("--json --drop-last-step " + path).out)["files"][0]["devices"][0]["compute_us"], 100.0);
  EXPECT_NE(trace("--csv " + path).out.find("0,kernel,gemm,2,200.000,"), std::string::npos);
}

TEST_F(TraceCommand, WarnsWhereCommunicationIsMissing) {
  EXPECT_NE(trace(file("a.json", 100), true).out.find("no kernel of communication was found"), std::string::npos);
}

TEST_F(TraceCommand, ComparesAndWritesATraceThatReadsBack) {
  const std::string before = file("before.json", 100);
  const std::string after = file("after.json", 40);
  const json changes = json::parse(trace("--json " + before + " --compare " + after).out, nullptr, false);
  ASSERT_FALSE(changes.is_discarded());
  EXPECT_EQ(changes["changes"]["kernels"][0]["change_us"], -120.0);
  const std::string chrome = (folder_ / "annotated.json.gz").string();
  EXPECT_EQ(trace(before + " --chrome " + chrome).code, 0);
  const json again = json::parse(trace("--json --no-path " + chrome).out, nullptr, false);
  ASSERT_FALSE(again.is_discarded());
  EXPECT_EQ(again["files"][0]["events"]["skipped"], 0);
  EXPECT_EQ(again["files"][0]["devices"][0]["compute_us"], 200.0);
  EXPECT_EQ(again["files"][0]["linked"], 2);
}

// One rule for all that read a trace: a file that is cut short is an error that names it and says where it ends.
TEST_F(TraceCommand, ACutTraceIsRefusedByAll) {
  const std::string whole = file("whole.json", 100);
  std::ifstream stream(whole);
  const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  const std::string cut = (folder_ / "cut.json").string();
  std::ofstream(cut) << text.substr(0, text.size() / 2);
  for (const std::string& call : {"trace " + cut, "replay " + cut, "whatif " + cut + " --apply tf32 --gpu h200",
                                  "trace " + whole + " --compare " + cut}) {
    const Outcome refused = forerun_outcome(call);
    EXPECT_EQ(refused.code, 1) << call;
    EXPECT_NE(refused.out.find(cut + ": the file is truncated"), std::string::npos) << call << ": " << refused.out;
  }
  const Outcome part = forerun_outcome("trace --partial --no-path " + cut);
  EXPECT_EQ(part.code, 0) << part.out;
  EXPECT_NE(part.out.find("the file is truncated"), std::string::npos) << part.out;
}

TEST_F(TraceCommand, AnArchiveOfTracesIsRefused) {
  file("a.json", 100);
  file("b.json", 40);
  const std::string tar = (folder_ / "traces.tar.gz").string();
  if (outcome_of("tar -czf " + tar + " -C " + folder_.string() + " a.json b.json").code != 0) GTEST_SKIP() << "no tar";
  for (const std::string& call : {"trace " + tar, "replay " + tar, "whatif " + tar + " --apply tf32 --gpu h200"}) {
    const Outcome refused = forerun_outcome(call);
    EXPECT_EQ(refused.code, 1) << call;
    EXPECT_NE(refused.out.find(tar + ": is a tar archive"), std::string::npos) << call << ": " << refused.out;
  }
}

TEST_F(TraceCommand, SaysWhatIsWrong) {
  EXPECT_EQ(trace("").code, 2);
  EXPECT_EQ(trace("/nowhere.json").code, 1);
  EXPECT_EQ(trace(folder_.string()).code, 1);  // a folder without traces
  std::ofstream(folder_ / "no.json") << "{}";
  const Outcome none = trace((folder_ / "no.json").string(), true);
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.out.find("traceEvents"), std::string::npos) << none.out;
  EXPECT_EQ(trace("--json --csv x.json").code, 2);
}

}  // namespace
}  // namespace forerun::cli
