// Help as users read it: it fits 100 columns, its examples parse, and what is made from it (completions, manual pages) is
// sound.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

constexpr size_t kColumns = 100;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The program's verbs with their own verbs, as the words that call them.
std::vector<std::string> all_verbs() {
  std::vector<std::string> found;
  std::vector<std::string> open = {""};
  while (!open.empty()) {
    const std::string verb = open.back();
    open.pop_back();
    bool below = false;
    for (const std::string& line : lines_of(forerun_outcome(verb + " --help").out)) {
      if (line == "Subcommands:") {
        below = true;
      } else if (line.empty()) {
        below = false;
      } else if (below && line.size() > 2 && line[0] == ' ' && line[2] != ' ') {
        const std::string name = line.substr(2, line.find(' ', 2) - 2);
        if (name == "train" || name == "eval" || name == "calibrate" || name == "simulate")
          continue;  // another program's
        open.push_back(verb.empty() ? name : verb + " " + name);
        found.push_back(open.back());
      }
    }
  }
  return found;
}

TEST(Help, FitsTheScreen) {
  std::vector<std::string> verbs = all_verbs();
  EXPECT_GE(verbs.size(), 20U);
  verbs.emplace_back("");
  for (const std::string& verb : verbs) {
    const Outcome help = forerun_outcome(verb + " --help");
    EXPECT_EQ(help.code, 0) << verb;
    for (const std::string& line : lines_of(help.out)) {
      EXPECT_LE(line.size(), kColumns) << "forerun " << verb << " --help: " << line;
    }
  }
}

// An example is a line that begins with "  forerun "; what explains it stands two blanks behind. It must not be a usage
// error: files that it names need not be there.
TEST(Help, ExamplesParse) {
  std::vector<std::string> verbs = all_verbs();
  verbs.emplace_back("");
  int examples = 0;
  for (const std::string& verb : verbs) {
    for (const std::string& line : lines_of(forerun_outcome(verb + " --help").out)) {
      if (!line.starts_with("  forerun ")) continue;
      std::string call = line.substr(10);
      call = call.substr(0, call.find("  "));
      call = call.substr(0, call.find(" > "));
      if (call.ends_with(" >")) call.resize(call.size() - 2);
      call = call.substr(0, call.find(" -- "));  // what follows is another program's
      if (call.starts_with("train") || call.starts_with("eval") || call.starts_with("calibrate")) continue;
      if (call.find("--with ") != std::string::npos) continue;  // forerun-lab's, which need not be built
      ++examples;
      // --help behind it: the options before it are parsed, nothing is run.
      const Outcome outcome = forerun_outcome(call + " --help");
      EXPECT_EQ(outcome.code, 0) << "forerun " << verb << " --help shows: forerun " << call << "\n" << outcome.out;
    }
  }
  EXPECT_GE(examples, 20);
}

TEST(Completions, BashAnswersWithVerbsOptionsAndNames) {
  const std::string script = testing::TempDir() + "/forerun_completion.sh";
  const std::string program = FORERUN_PROGRAM;
  ASSERT_EQ(outcome_of(program + " completions bash > " + script).code, 0);
  const auto complete = [&](const std::string& words, int at) {
    return outcome_of("bash -c 'source " + script + "; COMP_WORDS=(" + program + " " + words +
                      "); COMP_CWORD=" + std::to_string(at) + "; _forerun; echo \"${COMPREPLY[@]}\"' 2>&1")
        .out;
  };
  EXPECT_EQ(complete("pred", 1), "predict\n");
  EXPECT_EQ(complete("predict --prec", 2), "--precision\n");
  EXPECT_NE(complete("predict resnet1", 2).find("resnet18"), std::string::npos);
  EXPECT_NE(complete("predict resnet50 --gpu h2", 4).find("h200"), std::string::npos);
  EXPECT_EQ(complete("data summ", 2), "summary\n");
  std::filesystem::remove(script);
}

TEST(Completions, AnUnknownShellIsRefused) {
  EXPECT_EQ(forerun_outcome("completions tcsh").code, 1);
  EXPECT_EQ(forerun_outcome("completions").code, 2);
  EXPECT_EQ(forerun_outcome("completions fish").code, 0);
  EXPECT_EQ(forerun_outcome("completions zsh").code, 0);
}

TEST(ManPages, OneForEachVerb) {
  const std::string folder = testing::TempDir() + "/forerun_man";
  ASSERT_EQ(forerun_outcome("man --out " + folder).code, 0);
  for (const std::string& verb : all_verbs()) {
    std::string name = verb;
    for (char& c : name) c = c == ' ' ? '-' : c;
    std::ifstream page(folder + "/forerun-" + name + ".1");
    std::stringstream text;
    text << page.rdbuf();
    EXPECT_TRUE(text.str().starts_with(".TH FORERUN")) << verb;
    EXPECT_NE(text.str().find(".SH SYNOPSIS"), std::string::npos) << verb;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace forerun::cli
