// Every suite, trainer and calibration: it takes its own options and refuses those of others, its help names what it takes, and
// the examples that help texts show can be asked. Nothing is run here.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "lab/cli/calibrations/calibrations.h"
#include "lab/cli/lab_verbs.h"
#include "lab/cli/suites/suites.h"
#include "lab/cli/trainers/trainers.h"

namespace forerun::cli {
namespace {

struct Listed {
  std::string called;  // "forerun eval --suite memory"
  Task task;
};

std::vector<Listed> all_tasks() {
  std::vector<Listed> all;
  for (const Suite& suite : suites()) all.push_back({"forerun eval --suite " + suite.name, suite});
  for (const Trainer& trainer : trainers()) all.push_back({"forerun train " + trainer.name, trainer});
  for (const Calibration& fit : calibrations()) all.push_back({"forerun calibrate " + fit.name, fit});
  all.push_back({"forerun train ets", learned_trainer("ets", "made up", true)});
  all.push_back({"forerun train trees", learned_trainer("trees", "made up", false)});
  all.push_back({"forerun train", data_cache_writer()});
  return all;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// "forerun eval --suite memory" by the verb's own parser.
Result<Run> parse_command(const std::string& command) {
  const std::vector<std::string> words = words_of(command);
  const std::vector<std::string> rest(words.begin() + 2, words.end());
  EXPECT_EQ(words[0], "forerun");
  if (words[1] == "eval") return parse_eval(rest);
  if (words[1] == "train") return parse_train(rest);
  EXPECT_EQ(words[1], "calibrate");
  return parse_calibrate(rest);
}

std::string printed_by(const Run& run) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run(), kDone);
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}

std::string test_name(const testing::TestParamInfo<Listed>& info) {
  std::string name;
  for (const char c : info.param.called)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? std::string(1, c) : "_";
  return name + "_" + std::to_string(info.index);
}

class EveryTask : public testing::TestWithParam<Listed> {};

TEST_P(EveryTask, RefusesTheOptionsOfOthers) {
  const std::vector<std::string> own = options_of(GetParam().task);
  ASSERT_FALSE(own.empty());
  std::set<std::string> others = {"--no-such-option"};
  for (const Listed& other : all_tasks()) {
    for (const std::string& option : options_of(other.task)) others.insert(option);
  }
  for (const std::string& option : own) others.erase(option);
  for (const std::string& foreign : others) {
    for (const std::string& given : {foreign, foreign + "=1"}) {
      if (given.starts_with("--suite") && GetParam().called.starts_with("forerun eval")) continue;  // it is the verb's
      std::vector<std::string> words = {given};
      if (std::find(own.begin(), own.end(), "--write-cache") != own.end()) words = {"--write-cache", "x", given};
      const auto run = parse_task(GetParam().task, GetParam().called, words);
      ASSERT_FALSE(run.ok()) << GetParam().called << " " << given;
      const std::string message = run.error().message();
      EXPECT_NE(message.find("`" + GetParam().called + "` does not take " + foreign), std::string::npos) << message;
      for (const std::string& option : own) EXPECT_NE(message.find(option), std::string::npos) << message;
    }
  }
}

TEST_P(EveryTask, HelpNamesItsOptionsAndExamples) {
  const auto run = parse_task(GetParam().task, GetParam().called, {"--help"});
  ASSERT_TRUE(run.ok()) << run.error().message();
  const std::string help = printed_by(*run);
  EXPECT_NE(help.find(GetParam().called), std::string::npos) << help;
  EXPECT_NE(help.find(GetParam().task.summary), std::string::npos) << help;
  for (const std::string& option : options_of(GetParam().task)) EXPECT_NE(help.find("  " + option), std::string::npos);
  for (const Example& example : GetParam().task.examples) EXPECT_NE(help.find(example.command), std::string::npos);
}

TEST_P(EveryTask, ExamplesCanBeAsked) {
  ASSERT_FALSE(GetParam().task.examples.empty());
  for (const Example& example : GetParam().task.examples) {
    const auto run = parse_command(example.command);
    EXPECT_TRUE(run.ok()) << example.command << ": " << run.error().message();
  }
}

TEST_P(EveryTask, AValueThatIsEmptyIsRefused) {
  const std::vector<std::string> own = options_of(GetParam().task);
  for (const std::string option : {"--data", "--out", "--write-cache"}) {
    if (std::find(own.begin(), own.end(), option) == own.end()) continue;
    EXPECT_FALSE(parse_task(GetParam().task, GetParam().called, {option, ""}).ok()) << option;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryTask, testing::ValuesIn(all_tasks()), test_name);

// What each takes, written down once more: an option that gets lost is missed here.
TEST(Tasks, TakeTheseOptions) {
  const std::map<std::string, std::string> taken = {
      {"forerun eval --suite h200",
       "--weights --data --cache --leave-one-out --folds --split --iterations-alone --keep --html --json"},
      {"forerun eval --suite ets-t4", "--weights --traces --cache --html --json"},
      {"forerun eval --suite ets-2080ti", "--weights --traces --cache --html --json"},
      {"forerun eval --suite papers", "--traces --data --html --json"},
      {"forerun eval --suite calibration", "--machine --data --keep --html --json"},
      {"forerun eval --suite gpus", "--data --labels --traces --html --json"},
      {"forerun eval --suite other-gpus", "--data --labels --seed --epochs --peers-only --html --json"},
      {"forerun eval --suite memory", "--data --write-intervals --html --json"},
      {"forerun eval --suite compile", "--data --html --json"},
      {"forerun eval --suite whatif", "--data --html --json"},
      {"forerun eval --suite daydream", "--html --json"},
      {"forerun eval --suite ddl-benchmark", "--data --html --json"},
      {"forerun eval --suite vtrain", "--data --several-machines --html --json"},
      {"forerun eval --suite megatron", "--html --json"},
      {"forerun eval --suite llm-foundry", "--data --html --json"},
      {"forerun eval --suite published-runs", "--data --source --each --search --html --json"},
      {"forerun eval --suite testbed", "--data --html --json"},
      {"forerun eval --suite driple", "--data --weights --setting --html --json"},
      {"forerun train hybrid", "--data --without --without-op-samples --out --seed --json"},
      {"forerun train habitat", "--data --without --out --seed --epochs --json"},
      {"forerun train neusight", "--data --without --out --seed --epochs --json"},
      {"forerun train driple",
       "--data --cache --write-cache --out --validation --validate-on --seed --set --epochs --batch --rate --patience "
       "--seconds --minutes --device --checkpoint --resume --curve --folds --setting --pretrain --all-settings --study "
       "--json"},
      {"forerun train ets",
       "--suite --traces --data --cache --write-cache --most --split --out --validation --validate-on --seed --set "
       "--epochs "
       "--batch --rate --patience --seconds --minutes --device --checkpoint --resume --curve --start --meta --tasks "
       "--support --inner-steps --inner-rate --study --few --draws --json"},
      {"forerun train trees",
       "--suite --traces --data --cache --write-cache --most --split --out --validation --validate-on --seed --set "
       "--json"},
      {"forerun train", "--suite --traces --data --cache --write-cache --most"},
      {"forerun calibrate host", "--data --without --out --json"},
      {"forerun calibrate intervals", "--data --out --folds --seed --json"},
      {"forerun calibrate devices", "--data --traces --out --json"},
      {"forerun calibrate scale", "--data --out --json"},
      {"forerun calibrate testbed", "--data --out"},
      {"forerun calibrate convolutions", "--data --out"}};
  std::set<std::string> seen;
  for (const Listed& listed : all_tasks()) {
    seen.insert(listed.called);
    const auto expected = taken.find(listed.called);
    if (expected == taken.end()) {
      EXPECT_TRUE(listed.called.starts_with("forerun train ")) << listed.called << " is not in the test's table";
      continue;
    }
    EXPECT_EQ(options_of(listed.task), words_of(expected->second)) << listed.called;
  }
  for (const auto& [called, options] : taken) EXPECT_TRUE(seen.contains(called)) << called;
}

void expect_listed(const Result<Run>& listing, const std::vector<Task>& tasks) {
  ASSERT_TRUE(listing.ok()) << listing.error().message();
  const std::string text = printed_by(*listing);
  for (const Task& task : tasks) {
    EXPECT_NE(text.find("  " + task.name + " "), std::string::npos) << task.name;
    EXPECT_NE(text.find(task.summary), std::string::npos) << task.name;
    for (const std::string& former : task.former_names) EXPECT_EQ(text.find(former), std::string::npos) << former;
  }
}

TEST(Tasks, VerbsListThemWithTheirSummaries) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"--help"}, {"-h"}}) {
    expect_listed(parse_eval(words), suites());
    expect_listed(parse_train(words), trainers());
    expect_listed(parse_calibrate(words), calibrations());
  }
}

TEST(Tasks, FormerNamesOfSuitesAreUnderstood) {
  for (const char* name : {"seeds", "hkbu", "devices"}) {
    const auto run = parse_eval({"--suite", name, "--json"});
    EXPECT_TRUE(run.ok()) << run.error().message();
  }
  const auto refused = parse_eval({"--suite=seeds", "--cache", "x"});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("--suite papers"), std::string::npos) << refused.error().message();
}

}  // namespace
}  // namespace forerun::cli
