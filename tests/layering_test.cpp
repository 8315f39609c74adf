// Holds src/ and lab/ to the direction of the data flow. A file of src/ includes only its own stage and those that it uses,
// directly or through others, as CMakeLists.txt lists them (FORERUN_STAGE_USES). The program, cli, asks through the seam:
// its verbs include api/, ask/, report/, page/, store/, serve/ and base/ alone, and its tests all stages. The stages of lab/
// (FORERUN_LAB_STAGE_ORDER, then lab/cli) use all of src/ and those before them. So src/ never includes lab/. Tests and
// fuzzers may also include every stage listed before theirs, and report/, to look at what is made of an answer. LibTorch's headers belong to lab/learn, writing files and
// making threads to base/.
//
// It reads #include lines as text, so one that the preprocessor would skip counts too.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;

// By stage: itself and all that it may include; and what its tests may include too.
struct Allowed {
  std::set<std::string> sources, tests;
};
using Uses = std::map<std::string, Allowed>;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text + separator) {
    if (c != separator) {
      part += c;
    } else if (!part.empty()) {
      parts.push_back(std::exchange(part, {}));
    }
  }
  return parts;
}

// `product`: "base:,graph:base,zoo:graph+base,...", each behind those it uses; `lab`: "papers,dataset,...".
Uses uses_of(const std::string& product, const std::string& lab) {
  Uses uses;
  std::set<std::string> all;
  for (const std::string& entry : split(product, ',')) {
    const std::string stage = entry.substr(0, entry.find(':'));
    uses[stage].sources = {stage};
    for (const std::string& used : split(entry.substr(entry.find(':') + 1), '+')) {
      EXPECT_TRUE(uses.contains(used)) << stage << " stands before " << used << ", which it uses";
      uses[stage].sources.merge(std::set(uses[used].sources));
    }
    all.insert(stage);
    uses[stage].tests = all;
    uses[stage].tests.insert("report");
  }
  all.insert("cli");
  uses["cli"] = {{"base", "api", "report", "page", "ask", "store", "serve", "cli"}, all};
  for (const std::string& name : split(lab + ",cli", ',')) {
    all.insert("lab/" + name);
    uses["lab/" + name] = {all, all};
  }
  return uses;
}

Uses declared_uses() { return uses_of(FORERUN_STAGE_USES, FORERUN_LAB_STAGE_ORDER); }

struct Include {
  std::string target;  // "graph/graph.h"
  bool quoted = false;
};

// The include of a line, or one with an empty target.
Include include_of(const std::string& line) {
  size_t at = line.find_first_not_of(" \t");
  if (at == std::string::npos || line[at] != '#') return {};
  at = line.find_first_not_of(" \t", at + 1);
  if (at == std::string::npos || line.compare(at, 7, "include") != 0) return {};
  const size_t open = line.find_first_of("\"<", at + 7);
  if (open == std::string::npos) return {};
  const bool quoted = line[open] == '"';
  const size_t close = line.find(quoted ? '"' : '>', open + 1);
  if (close == std::string::npos) return {};
  return {line.substr(open + 1, close - open - 1), quoted};
}

// "graph" of "graph/graph.h", "lab/eval" of "lab/eval/suite.h"; nothing where the path has no folder ("memory" is a
// standard header, not the stage).
std::string stage_of(const std::string& path) {
  const size_t from = path.starts_with("lab/") ? 4 : 0;
  const size_t slash = path.find('/', from);
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

// Of a source below the root: "src/graph/graph.h" is "graph/graph.h", "lab/eval/suite.h" stays.
std::string included_as(const std::string& relative) {
  return relative.starts_with("src/") ? relative.substr(4) : relative;
}

std::vector<fs::path> sources_below(const fs::path& root) {
  std::vector<fs::path> files;
  for (const char* wing : {"src", "lab"}) {
    if (!fs::exists(root / wing)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / wing)) {
      const fs::path extension = entry.path().extension();
      if (entry.is_regular_file() && (extension == ".h" || extension == ".cpp")) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Every include against the direction below `root`, as "file:line: why".
std::vector<std::string> violations(const fs::path& root, const Uses& uses) {
  std::vector<std::string> found;
  for (const fs::path& file : sources_below(root)) {
    const std::string relative = included_as(fs::relative(file, root).generic_string());
    const std::string stage = stage_of(relative);
    if (!uses.contains(stage)) {
      found.push_back(relative + ": no stage is called '" + stage + "'");
      continue;
    }
    const bool tests = relative.ends_with("_test.cpp") || relative.ends_with("_fuzz.cpp");
    const std::set<std::string>& allowed = tests ? uses.at(stage).tests : uses.at(stage).sources;
    std::ifstream stream(file);
    std::string line;
    for (int number = 1; std::getline(stream, line); ++number) {
      const Include include = include_of(line);
      if (include.target.empty()) continue;
      const std::string place = relative + ":" + std::to_string(number) + ": " + include.target;
      const std::string folder = stage_of(include.target);
      if (folder == "torch" || folder == "ATen" || folder == "c10") {
        if (stage != "lab/learn") found.push_back(place + " is LibTorch's; only lab/learn may include it");
      } else if (include.target == "nlohmann/json.hpp" && !relative.ends_with("_test.cpp") &&
                 (stage == "report" || stage == "cli")) {
        found.push_back(place + " takes long to compile; JsonWriter (base/json_writer.h) writes JSON");
      } else if (include.quoted && !uses.contains(folder)) {
        found.push_back(place + " does not start with a stage");
      } else if (uses.contains(folder) && !allowed.contains(folder)) {
        found.push_back(place + " is not among what " + stage + "/ uses");
      }
    }
  }
  return found;
}

TEST(Layering, SourcesFollowTheDataFlow) {
  for (const std::string& violation : violations(FORERUN_SOURCE_DIR, declared_uses())) ADD_FAILURE() << violation;
}

TEST(Layering, EveryFolderIsAStage) {
  const Uses stages = declared_uses();
  for (const std::string wing : {"src", "lab"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(FORERUN_SOURCE_DIR) / wing)) {
      if (!entry.is_directory()) continue;
      const std::string name = entry.path().filename().string();
      const std::string stage = wing == "lab" ? "lab/" + name : name;
      EXPECT_TRUE(stages.contains(stage)) << wing << "/" << name << " is not among the stages";
    }
  }
}

// What only base/ does, since others do it wrong in ways that show late: a file half written, a program that ends because a
// thread could not be made. As "file:line: what to use instead".
std::vector<std::string> done_by_hand(const fs::path& root) {
  struct Call {
    const char* text;
    const char* instead;
  };
  constexpr Call kCalls[] = {{"std::ofstream", "write_whole_file (base/output_file.h)"},
                             {"std::fopen(", "OutputFile (base/output_file.h)"},
                             {"std::async(", "parallel_for (base/parallel.h)"},
                             {"std::thread>", "parallel_for (base/parallel.h)"},
                             {"std::jthread", "parallel_for (base/parallel.h)"}};
  std::vector<std::string> found;
  for (const fs::path& file : sources_below(root)) {
    const std::string relative = included_as(fs::relative(file, root).generic_string());
    if (relative.ends_with("_test.cpp") || stage_of(relative) == "base") continue;
    std::ifstream stream(file);
    std::string line;
    for (int number = 1; std::getline(stream, line); ++number) {
      for (const Call& call : kCalls) {
        if (line.find(call.text) == std::string::npos) continue;
        found.push_back(relative + ":" + std::to_string(number) + ": use " + call.instead);
      }
    }
  }
  return found;
}

TEST(Layering, OnlyBaseWritesFilesAndMakesThreads) {
  for (const std::string& found : done_by_hand(FORERUN_SOURCE_DIR)) ADD_FAILURE() << found;
}

// A source tree of one file, to show that the check can fail.
class PlantedInclude : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            ("layering_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::vector<std::string> check(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
    return violations(root_, uses_of("base:,graph:base,zoo:graph,monitor:base,report:zoo", "learn,eval"));
  }

  fs::path root_;
};

TEST_F(PlantedInclude, JsonIsWrittenByJsonWriterInReports) {
  EXPECT_EQ(check("src/report/a.cpp", "#include <nlohmann/json.hpp>\n").size(), 1U);
  EXPECT_EQ(check("src/report/a_test.cpp", "#include <nlohmann/json.hpp>\n").size(), 1U) << "a test may read it";
}

TEST_F(PlantedInclude, AFileWrittenByHandIsFound) {
  check("src/cli/a.cpp", "int main() {\n  std::ofstream(\"x\") << 1;\n}\n");
  EXPECT_EQ(done_by_hand(root_), std::vector<std::string>{"cli/a.cpp:2: use write_whole_file (base/output_file.h)"});
  fs::remove_all(root_);
  check("src/base/a.cpp", "std::ofstream file;\n");
  EXPECT_TRUE(done_by_hand(root_).empty());
}

TEST_F(PlantedInclude, WhatAStageUsesAndItselfPass) {
  EXPECT_TRUE(check("src/zoo/a.h", "#include \"zoo/b.h\"\n#include \"base/c.h\"\n#include <vector>\n").empty());
}

TEST_F(PlantedInclude, WhatItDoesNotUseIsFound) {
  EXPECT_EQ(check("src/zoo/a.h", "#include \"monitor/b.h\"\n").size(), 1U);
  EXPECT_EQ(check("src/zoo/a.h", "#include \"report/b.h\"\n").size(), 1U);
}

TEST_F(PlantedInclude, AgainstTheFlowIsFound) {
  const auto found = check("src/base/a.h", "// text\n#include \"graph/b.h\"\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], "base/a.h:2: graph/b.h is not among what base/ uses");
}

TEST_F(PlantedInclude, AngleBracketsAndBlanksDoNotHideIt) {
  EXPECT_EQ(check("src/base/deeper/a.cpp", "  #  include   <graph/b.h>\n").size(), 1U);
}

TEST_F(PlantedInclude, AStandardHeaderIsNotTheStageOfItsName) {
  EXPECT_TRUE(check("src/base/a.h", "#include <graph>\n").empty());
}

TEST_F(PlantedInclude, TorchOutsideLearnIsFound) {
  EXPECT_EQ(check("src/graph/a.cpp", "#include <torch/torch.h>\n").size(), 1U);
  EXPECT_EQ(check("src/graph/a.cpp", "#include <c10/util/Half.h>\n").size(), 1U);
}

TEST_F(PlantedInclude, TorchInLearnPasses) {
  EXPECT_TRUE(check("lab/learn/a.cpp", "#include <torch/torch.h>\n").empty());
}

TEST_F(PlantedInclude, TheLabUsesTheProductAndNeverTheOtherWayRound) {
  EXPECT_TRUE(check("lab/eval/a.cpp", "#include \"graph/b.h\"\n#include \"lab/learn/c.h\"\n").empty());
  fs::remove_all(root_);
  const auto found = check("src/cli/a.cpp", "#include \"lab/learn/c.h\"\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], "cli/a.cpp:1: lab/learn/c.h is not among what cli/ uses");
}

TEST_F(PlantedInclude, VerbsAskThroughTheSeam) {
  const auto found = check("src/cli/a_command.cpp", "#include \"zoo/b.h\"\n#include \"report/c.h\"\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], "cli/a_command.cpp:1: zoo/b.h is not among what cli/ uses");
  fs::remove_all(root_);
  EXPECT_TRUE(check("src/cli/a_command_test.cpp", "#include \"zoo/b.h\"\n").empty());
}

TEST_F(PlantedInclude, OnlyTestsLookAtReports) {
  EXPECT_EQ(check("src/graph/a.cpp", "#include \"report/b.h\"\n").size(), 1U);
  fs::remove_all(root_);
  EXPECT_TRUE(check("src/graph/a_test.cpp", "#include \"report/b.h\"\n").empty());
}

TEST_F(PlantedInclude, APathThatNamesNoStageIsFound) {
  EXPECT_EQ(check("src/graph/a.cpp", "#include \"neighbour.h\"\n").size(), 1U);
  EXPECT_EQ(check("src/utilities/a.cpp", "#include <vector>\n").size(), 2U);
}

}  // namespace
