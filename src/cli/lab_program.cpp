#include "cli/lab_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "cli/command.h"

namespace forerun::cli {
namespace {

std::vector<std::string> own_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  if (!words.empty()) words.erase(words.begin());
  return words;
}

}  // namespace

int hand_to_lab(const std::string& asked, std::vector<std::string> words) {
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::string lab = (self.parent_path() / "forerun-lab").string();
  words.insert(words.begin(), lab);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (!unknown) execv(lab.c_str(), argv.data());  // returns only where it cannot be run
  return fail({fmt::format("{} is answered by the program forerun-lab, which was not built", asked), lab,
               "build it: ./run build"});
}

int hand_all_to_lab(const std::string& asked) { return hand_to_lab(asked, own_words()); }

}  // namespace forerun::cli
