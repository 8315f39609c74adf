// Holds src/ to the direction of the data flow: a file includes only its own stage and those to its left, in the order
// that CMakeLists.txt gives (FORERUN_STAGE_ORDER) with cli last, and LibTorch's headers only in learn/. And to base/ for
// what only it does: writing files and making threads.
//
// It reads #include lines as text, so one that the preprocessor would skip counts too.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::vector<std::string> stage_order() {
  std::vector<std::string> stages;
  std::string name;
  for (const char c : std::string(FORERUN_STAGE_ORDER) + ",cli,") {
    if (c != ',') {
      name += c;
    } else {
      stages.push_back(name);
      name.clear();
    }
  }
  return stages;
}

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

// "graph" of "graph/graph.h"; nothing where the path has no folder ("memory" is a standard header, not the stage).
std::string first_folder(const std::string& path) {
  const size_t slash = path.find('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

// Every include against the direction below `source`, as "file:line: why".
std::vector<std::string> violations(const fs::path& source, const std::vector<std::string>& stages) {
  std::map<std::string, size_t> rank;
  for (size_t i = 0; i < stages.size(); ++i) rank[stages[i]] = i;

  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(source)) {
    const fs::path extension = entry.path().extension();
    if (entry.is_regular_file() && (extension == ".h" || extension == ".cpp")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());

  std::vector<std::string> found;
  for (const fs::path& file : files) {
    const std::string relative = fs::relative(file, source).generic_string();
    const std::string stage = first_folder(relative);
    if (!rank.contains(stage)) {
      found.push_back(relative + ": no stage is called '" + stage + "'");
      continue;
    }
    std::ifstream stream(file);
    std::string line;
    for (int number = 1; std::getline(stream, line); ++number) {
      const Include include = include_of(line);
      if (include.target.empty()) continue;
      const std::string place = relative + ":" + std::to_string(number) + ": " + include.target;
      const std::string folder = first_folder(include.target);
      if (folder == "torch" || folder == "ATen" || folder == "c10") {
        if (stage != "learn") found.push_back(place + " is LibTorch's; only learn/ may include it");
      } else if (include.quoted && !rank.contains(folder)) {
        found.push_back(place + " does not start with a stage");
      } else if (rank.contains(folder) && rank[folder] > rank[stage]) {
        found.push_back(place + " is to the right of " + stage + "/");
      }
    }
  }
  return found;
}

TEST(Layering, SourcesFollowTheDataFlow) {
  const fs::path source = fs::path(FORERUN_SOURCE_DIR) / "src";
  for (const std::string& violation : violations(source, stage_order())) ADD_FAILURE() << violation;
}

TEST(Layering, EveryFolderIsAStage) {
  const std::vector<std::string> stages = stage_order();
  for (const auto& entry : fs::directory_iterator(fs::path(FORERUN_SOURCE_DIR) / "src")) {
    if (!entry.is_directory()) continue;
    const std::string folder = entry.path().filename().string();
    EXPECT_EQ(std::count(stages.begin(), stages.end(), folder), 1) << folder << " is not in FORERUN_STAGES";
  }
}

// What only base/ does, since others do it wrong in ways that show late: a file half written, a program that ends because a
// thread could not be made. As "file:line: what to use instead".
std::vector<std::string> done_by_hand(const fs::path& source) {
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
  for (const auto& entry : fs::recursive_directory_iterator(source)) {
    const std::string relative = fs::relative(entry.path(), source).generic_string();
    const bool source_file = relative.ends_with(".cpp") || relative.ends_with(".h");
    if (!source_file || relative.ends_with("_test.cpp") || first_folder(relative) == "base") continue;
    std::ifstream stream(entry.path());
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
  for (const std::string& found : done_by_hand(fs::path(FORERUN_SOURCE_DIR) / "src")) ADD_FAILURE() << found;
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
    return violations(root_, {"base", "graph", "learn", "cli"});
  }

  fs::path root_;
};

TEST_F(PlantedInclude, AFileWrittenByHandIsFound) {
  check("cli/a.cpp", "int main() {\n  std::ofstream(\"x\") << 1;\n}\n");
  EXPECT_EQ(done_by_hand(root_), std::vector<std::string>{"cli/a.cpp:2: use write_whole_file (base/output_file.h)"});
  fs::remove_all(root_);
  check("base/a.cpp", "std::ofstream file;\n");
  EXPECT_TRUE(done_by_hand(root_).empty());
}

TEST_F(PlantedInclude, ToTheLeftOrWithinAStagePasses) {
  EXPECT_TRUE(check("graph/a.h", "#include \"graph/b.h\"\n#include \"base/c.h\"\n#include <vector>\n").empty());
}

TEST_F(PlantedInclude, ToTheRightIsFound) {
  const auto found = check("base/a.h", "// text\n#include \"graph/b.h\"\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], "base/a.h:2: graph/b.h is to the right of base/");
}

TEST_F(PlantedInclude, AngleBracketsAndBlanksDoNotHideIt) {
  EXPECT_EQ(check("base/deeper/a.cpp", "  #  include   <graph/b.h>\n").size(), 1U);
}

TEST_F(PlantedInclude, AStandardHeaderIsNotTheStageOfItsName) {
  EXPECT_TRUE(check("base/a.h", "#include <graph>\n").empty());
}

TEST_F(PlantedInclude, TorchOutsideLearnIsFound) {
  EXPECT_EQ(check("graph/a.cpp", "#include <torch/torch.h>\n").size(), 1U);
  EXPECT_EQ(check("graph/a.cpp", "#include <c10/util/Half.h>\n").size(), 1U);
}

TEST_F(PlantedInclude, TorchInLearnPasses) { EXPECT_TRUE(check("learn/a.cpp", "#include <torch/torch.h>\n").empty()); }

TEST_F(PlantedInclude, APathThatNamesNoStageIsFound) {
  EXPECT_EQ(check("graph/a.cpp", "#include \"neighbour.h\"\n").size(), 1U);
  EXPECT_EQ(check("utilities/a.cpp", "#include <vector>\n").size(), 2U);
}

}  // namespace
