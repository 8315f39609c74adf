// Holds the repository to standing alone: no source, script or document names a folder beside the checkout. Data sets of
// other authors are found through FORERUN_DATASETS (base/datasets.h), what the project measured lies in data/.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// Put together from parts, so that this file does not name one itself.
const std::string kBeside = std::string("..") + "/shared";

// "file:line" of every line below `folder` that names a folder beside the checkout.
std::vector<std::string> lines_that_leave(const fs::path& folder) {
  static const std::set<std::string> kTexts = {".cpp", ".h",    ".py",  ".md", ".cmake",
                                               ".txt", ".json", ".lua", ".sh", ""};
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || !kTexts.contains(entry.path().extension().string())) continue;
    std::ifstream file(entry.path());
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      if (line.find(kBeside) == std::string::npos) continue;
      found.push_back(fs::relative(entry.path(), folder).string() + ":" + std::to_string(number));
    }
  }
  return found;
}

TEST(StandsAlone, NothingNamesAFolderBesideTheCheckout) {
  const fs::path root = FORERUN_SOURCE_DIR;
  for (const char* part : {"src", "lab", "tests", "bench", "docs", "examples", "python", "cmake", "data"}) {
    for (const std::string& place : lines_that_leave(root / part)) ADD_FAILURE() << part << "/" << place;
  }
  for (const char* name :
       {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "CMakeLists.txt", "run"}) {
    std::ifstream file(root / name);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    ASSERT_FALSE(text.empty()) << name;
    EXPECT_EQ(text.find(kBeside), std::string::npos) << name;
  }
}

TEST(StandsAlone, AFileThatDoesIsFound) {
  const fs::path folder = fs::path(testing::TempDir()) / "stands_alone_test";
  fs::create_directories(folder / "deeper");
  std::ofstream(folder / "deeper" / "page.md") << "one\ncat " << kBeside << "/data\n";
  EXPECT_EQ(lines_that_leave(folder), std::vector<std::string>{"deeper/page.md:2"});
  fs::remove_all(folder);
}

}  // namespace
