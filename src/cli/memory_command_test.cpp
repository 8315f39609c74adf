// `forerun memory` as a user meets it: what it prints and what it exits with.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

using nlohmann::json;

Outcome memory(const std::string& arguments) { return forerun_outcome("memory " + arguments); }

// A run that takes two blocks of one segment and gives one back.
std::string record_with_trace() {
  const json trace = {{"action", "Saarf"},          {"address_base", 4096},
                      {"address", {0, 0, 2, 0, 0}}, {"size", {2097152, 1000, 512, 1000, 1000}},
                      {"stream", {0, 0, 0, 0, 0}},  {"marks", json::array()}};
  const json record = {{"schema", "run/2"},
                       {"id", "hand/1"},
                       {"status", "oom"},  // so that it needs no graph
                       {"family", "mlp"},
                       {"args", json::object()},
                       {"input", {"flat", 8, 4, 0, 2}},
                       {"run", {{"precision", "fp32"}, {"optimizer", {{"name", "SGD"}, {"impl", "foreach"}}}}},
                       {"env", {{"gpu", "NVIDIA H200"}}},
                       {"mem",
                        {{"peak_allocated", 1536},
                         {"peak_reserved", 2097152},
                         {"peak_active", 1536},
                         {"peak_requested", 1512},
                         {"allocated", 512},
                         {"retries", 0},
                         {"segments", 1}}},
                       {"alloc_trace", trace}};
  return record.dump() + "\n";
}

TEST(MemoryCommand, ReplaysTraces) {
  const auto path = std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_memory_command.jsonl");
  std::ofstream(path) << record_with_trace();
  const Outcome text = memory("replay " + path.string());
  EXPECT_EQ(text.code, 0) << text.out;
  EXPECT_NE(text.out.find("hand/1"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("every block at its recorded address: 1 of 1 runs"), std::string::npos) << text.out;
  const Outcome lines = memory("replay --json " + path.string());
  const json first = json::parse(lines.out.substr(0, lines.out.find('\n')));
  EXPECT_TRUE(first["requested"]["exact"]) << lines.out;
  EXPECT_TRUE(first["allocated"]["exact"]) << lines.out;
  EXPECT_TRUE(first["reserved"]["exact"]) << lines.out;
  EXPECT_EQ(first["misplaced"], 0);
  const Outcome expandable = memory("replay --json --allocator expandable_segments:True " + path.string());
  EXPECT_EQ(expandable.code, 0) << expandable.out;
  std::filesystem::remove(path);
}

TEST(MemoryCommand, SaysWhatIsWrong) {
  EXPECT_EQ(memory("").code, 2);
  EXPECT_EQ(memory("replay").code, 2);
  EXPECT_EQ(memory("replay /nowhere.jsonl").code, 1);
  const Outcome nothing = memory("replay /dev/null");
  EXPECT_EQ(nothing.code, 1);
  EXPECT_NE(nothing.out.find("/dev/null: holds no allocator traces"), std::string::npos) << nothing.out;
  const Outcome setting = memory("replay /nowhere.jsonl --allocator split:1");
  EXPECT_EQ(setting.code, 1);
  EXPECT_NE(setting.out.find("max_split_size_mb"), std::string::npos) << setting.out;
}

}  // namespace
}  // namespace forerun::cli
