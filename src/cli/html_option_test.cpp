// --html as users meet it: every verb that answers has it, the file is whole and holds the answer, what is printed stays the same.
#include "cli/html_option.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

namespace fs = std::filesystem;

class HtmlOptionTest : public testing::Test {
 protected:
  HtmlOptionTest() : folder_(fs::temp_directory_path() / ("forerun_html_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~HtmlOptionTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string file() const { return (folder_ / "page.html").string(); }

  // The data of the page that was written.
  [[nodiscard]] nlohmann::json data() const {
    std::ifstream in(file());
    std::stringstream page;
    page << in.rdbuf();
    const std::string text = page.str(), open = "id=\"data\">";
    const size_t from = text.find(open) + open.size();
    return nlohmann::json::parse(text.substr(from, text.find("</script>", from) - from));
  }

  fs::path folder_;
};

TEST_F(HtmlOptionTest, HoldsWhatJsonPrints) {
  const std::string call = "predict resnet18 --batch 4 --gpu t4";
  const Outcome plain = forerun_outcome(call), json = forerun_outcome(call + " --json");
  const Outcome with = forerun_outcome(call + " --html " + file());
  EXPECT_EQ(with.code, 0);
  EXPECT_EQ(with.out, plain.out) << "what is printed stays the same";
  const nlohmann::json page = data();
  EXPECT_EQ(page["answers"][0], nlohmann::json::parse(json.out));
  EXPECT_EQ(page["command"], "forerun predict resnet18 --gpu t4 --batch 4");
  EXPECT_EQ(page["verb"], "predict");
  EXPECT_GT(page["series"]["memory"]["columns"]["allocated"].size(), 10U);
  EXPECT_EQ(page["series"]["ops"]["columns"]["op"].size(), page["answers"][0]["ops"].get<size_t>());
}

TEST_F(HtmlOptionTest, TheCommandIsOneThatAShellTakes) {
  forerun_outcome("sweep resnet18 --over batch=1,2 --over 'precision=fp32,amp_bf16' --set 'image=64' --html " + file());
  EXPECT_EQ(data()["command"], "forerun sweep resnet18 --over batch=1,2 --over precision=fp32,amp_bf16 --set image=64");
  EXPECT_EQ(data()["answers"].size(), 4U);
  const std::string again = data()["command"].get<std::string>().substr(8);
  EXPECT_EQ(forerun_outcome(again).code, 0);
}

TEST_F(HtmlOptionTest, TheTimeCanBeHeld) {
  for (int i = 0; i < 2; ++i) {
    outcome_of("SOURCE_DATE_EPOCH=0 " + std::string(FORERUN_PROGRAM) + " devices --html " + file() + " >/dev/null");
    EXPECT_EQ(data()["made"], "1970-01-01T00:00:00Z");
  }
}

TEST_F(HtmlOptionTest, ARunThatDoesNotFitHasAPageToo) {
  EXPECT_EQ(forerun_outcome("predict llama2_7b --gpu t4 --html " + file()).code, 3);
  EXPECT_EQ(data()["answers"][0]["verdict"], "does_not_fit");
  EXPECT_EQ(forerun_outcome("schedule --synthetic jobs=20,gpus=8 --policy fifo --html " + file()).code, 0);
  EXPECT_NE(data()["series"]["jobs"].get<std::string>().find("policy,id,user"), std::string::npos);
}

TEST_F(HtmlOptionTest, VerbsThatAnswerHaveIt) {
  for (const char* verb :
       {"predict", "fit", "compare", "sweep", "check", "zoo check", "devices", "data summary", "memory replay",
        "schedule", "slurm limits", "slurm replay", "trace", "replay", "whatif", "scale", "monitor"}) {
    EXPECT_NE(forerun_outcome(std::string(verb) + " --help").out.find("--html"), std::string::npos) << verb;
  }
}

}  // namespace
}  // namespace forerun::cli
