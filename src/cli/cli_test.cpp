// The program as a user meets it: what it prints, where, and what it exits with.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Outcome forerun(const std::string& arguments) {
  const auto folder = std::filesystem::temp_directory_path();
  const auto err = folder / ("forerun_cli_test_" + std::to_string(getpid()) + ".err");
  const std::string command = std::string(FORERUN_PROGRAM) + " " + arguments + " 2> " + err.string();
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  while (const size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) outcome.out.append(buffer.data(), count);
  outcome.code = WEXITSTATUS(pclose(pipe));
  outcome.err = contents(err);
  std::filesystem::remove(err);
  return outcome;
}

class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& text)
      : path_((std::filesystem::temp_directory_path() / (std::to_string(getpid()) + name)).string()) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Cli, PredictsInTextJsonAndCsv) {
  const Outcome text = forerun("predict resnet18 --batch 8");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("11,689,512 parameters"), std::string::npos);
  EXPECT_EQ(text.out.find("fits, "), 0U) << text.out;  // the verdict comes first
  EXPECT_NE(forerun("predict resnet18 --batch 8 --details").out.find("\nAssumed\n"), std::string::npos);

  const Outcome json = forerun("predict resnet18 --batch 8 --json");
  const auto answer = nlohmann::json::parse(json.out);
  for (const char* field : {"id", "iter_ms", "gpu_ms", "host_ms", "bound", "phases", "peak_allocated", "peak_reserved",
                            "fits", "unknown_ops"}) {
    EXPECT_TRUE(answer.contains(field)) << field;
  }
  EXPECT_EQ(answer["params"], 11689512);
  EXPECT_TRUE(json.err.empty()) << json.err;

  const Outcome csv = forerun("predict resnet18 --batch 8 --csv");
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 2);
  const auto columns = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  const size_t first = csv.out.find('\n');
  EXPECT_EQ(columns(csv.out.substr(0, first)), columns(csv.out.substr(first)));
}

// Where a compiled run is asked for it is what fits or does not, either way; both verdicts are told.
TEST(Cli, TheCompiledRunDecidesTheExitCode) {
  const Outcome larger = forerun("predict bert_base --precision bf16 --batch 1800 --compile --brief");
  EXPECT_EQ(larger.code, 3);
  EXPECT_EQ(larger.out.find("eager:    fits"), 0U) << larger.out;
  EXPECT_NE(larger.out.find("\ncompiled: DOES NOT FIT"), std::string::npos) << larger.out;
  EXPECT_EQ(forerun("predict bert_base --precision bf16 --batch 1800 --compile --brief --json").code, 3);
  const Outcome smaller = forerun("predict gpt2_small --precision amp_bf16 --batch 120 --compile --brief");
  EXPECT_EQ(smaller.code, 0);
  EXPECT_EQ(smaller.out.find("eager:    DOES NOT FIT"), 0U) << smaller.out;
  EXPECT_NE(smaller.out.find("\ncompiled: fits"), std::string::npos) << smaller.out;
}

TEST(Cli, ExitsWithThreeWhereItDoesNotFit) {
  const Outcome outcome = forerun("predict llama2_7b --gpu t4 --json");
  EXPECT_EQ(outcome.code, 3);
  const auto answer = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(answer["fits"], false);
  EXPECT_EQ(answer["verdict"], "does_not_fit");
  EXPECT_EQ(answer["memory_at_least"], true);
  const Outcome huge = forerun("predict resnet18 --batch 10000000");
  EXPECT_EQ(huge.code, 3) << huge.out;
  EXPECT_NE(huge.out.find("DOES NOT FIT"), std::string::npos) << huge.out;
}

TEST(Cli, SaysThatARunMayNotFit) {
  const Outcome largest = forerun("fit resnet18 --gpu t4 --brief --json");
  ASSERT_EQ(largest.code, 0) << largest.err;
  const auto fit = nlohmann::json::parse(largest.out);
  EXPECT_EQ(fit["prediction"]["verdict"], "fits");
  EXPECT_EQ(fit["next"]["verdict"], "may_not_fit");
  const std::string batch = std::to_string(fit["largest"].get<int64_t>() + 1);
  const Outcome next = forerun("predict resnet18 --gpu t4 --json --batch " + batch);
  EXPECT_EQ(next.code, 0) << next.err;
  const auto answer = nlohmann::json::parse(next.out);
  EXPECT_EQ(answer["verdict"], "may_not_fit");
  EXPECT_EQ(answer["fits"], false);
  EXPECT_GT(answer["memory_ranges"]["driver"]["high"], answer["device_memory"]);
  EXPECT_LE(answer["memory_ranges"]["driver"]["low"], answer["device_memory"]);
}

struct WrongCall {
  std::string arguments;
  int code;
  std::string says;
};

class WrongCalls : public testing::TestWithParam<WrongCall> {};

TEST_P(WrongCalls, AreAnsweredWithWhatToDo) {
  const Outcome outcome = forerun(GetParam().arguments);
  EXPECT_EQ(outcome.code, GetParam().code) << outcome.out << outcome.err;
  EXPECT_TRUE(outcome.out.empty()) << outcome.out;
  EXPECT_NE(outcome.err.find(GetParam().says), std::string::npos) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongCalls,
    testing::Values(
        WrongCall{"predict resnet51", 1, "did you mean resnet50"}, WrongCall{"predict resnet50 --gpu h20O", 1, "h200"},
        WrongCall{"predict resnet50 --set layrs=1,1,1,1", 1, "layers"},
        WrongCall{"predict resnet50 --set layers=1,x", 1, "layers"},
        WrongCall{"predict inception_v3 --set image=16", 1, "too small"},
        WrongCall{"predict resnet50 --set layers", 2, "KEY=VALUE"},
        WrongCall{"predict resnet50 --precision fp31", 1, "fp32"},
        WrongCall{"predict resnet50 --optimizer adamx", 1, "adam"},
        WrongCall{"predict resnet50 --optimizer sgd:momentum=much", 1, "momentum"},
        WrongCall{"predict resnet50 --optimizer rmsprop:impl=fused", 1, "no fused"},
        WrongCall{"predict resnet50 --batch 0", 2, "--batch"},
        WrongCall{"predict resnet50 --batch 99999999999999999999", 2, "--batch"},
        WrongCall{"predict resnet50 --set batch=1000000000", 1, "elements"},
        WrongCall{"predict resnet50 --set image=1000000000", 1, "elements"},
        WrongCall{"predict resnet50 --batch 64 --set batch=32", 2, "--batch"},
        WrongCall{"predict resnet50 --set image=64 --set image=32", 2, "twice"},
        WrongCall{"predict resnet50 --set image=", 2, "no value"}, WrongCall{"predict resnet50 --gpu ''", 2, "empty"},
        WrongCall{"predict resnet50 --optimizer ''", 2, "empty"},
        WrongCall{"predict resnet50 --precision ''", 2, "empty"}, WrongCall{"predict ''", 2, "empty"},
        WrongCall{"fit resnet50 --gpu ''", 2, "empty"}, WrongCall{"fit resnet50 --optimizer ''", 2, "empty"},
        WrongCall{"fit resnet50 --set batch=8", 1, "--axis"}, WrongCall{"fit resnet50 --margin wide", 1, "--margin"},
        WrongCall{"sweep resnet50 --over batch=1 --gpu ''", 2, "empty"},
        WrongCall{"sweep resnet50 --over batch=1 --set batch=2", 1, "--over"},
        WrongCall{"sweep resnet50 --over batch=1 --over batch=2", 1, "--over"},
        WrongCall{"sweep resnet50 --over gpu=t4,l4 --gpu a100", 1, "--gpu"},
        WrongCall{"predict resnet50 --optimizer sgd:lr=1,lr=2", 1, "twice"}, WrongCall{"predict", 2, "MODEL"},
        WrongCall{"predct resnet50", 2, "did you mean predict"},
        WrongCall{"slurm srve --socket x", 2, "did you mean serve"}, WrongCall{"data chek x", 2, "did you mean check"},
        WrongCall{"slurm serve", 2, "forerun slurm serve --help"}, WrongCall{"slurm", 2, "forerun slurm --help"},
        WrongCall{"predict no/such/runs.jsonl.gz", 1, "no/such/runs.jsonl.gz"},
        WrongCall{"predict no/such/model.onnx", 1, "no/such/model.onnx"},
        WrongCall{"predict no/such/model.pt", 1, "no such file"}, WrongCall{"predict a.jsonl --batch 3", 1, "a.jsonl"},
        WrongCall{"predict " FORERUN_DATA_DIR "/h200/first-starter.jsonl.zst --batch 3", 1, "captured at one size"},
        WrongCall{"predict " FORERUN_DATA_DIR "/h200/first-starter.jsonl.zst --precision tf32", 2, "recorded"},
        WrongCall{"zoo check no/such/runs.jsonl", 1, "no/such/runs.jsonl"}, WrongCall{"zoo resnit", 1, "resnet"},
        WrongCall{"devices --device-file no/such.json", 1, "no/such.json"}));

TEST(Cli, NamesBrokenRecordsAndGoesOn) {
  const TemporaryFile runs("_broken.jsonl", "{\"id\": \"a\"}\n{\"id\": \"b\"\n");
  const Outcome outcome = forerun("predict " + runs.path());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("record 1"), std::string::npos);
  EXPECT_NE(outcome.err.find("record 2"), std::string::npos);
  EXPECT_NE(outcome.err.find("2 of 2 records"), std::string::npos);
}

TEST(Cli, RefusesTruncatedGzip) {
  const TemporaryFile runs("_truncated.jsonl.gz", std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\x56", 12));
  const Outcome outcome = forerun("predict " + runs.path());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("truncated"), std::string::npos) << outcome.err;
}

TEST(Cli, TakesAUsersDevice) {
  const TemporaryFile device("_gpu.json", R"({"format": "device/1", "name": "Test GPU", "aliases": ["testgpu"],
    "vendor": "nobody", "sources": {"test": "made up for a test"},
    "sm_count": {"value": 10, "source": "test"}, "clock_mhz": {"value": 1000, "source": "test"},
    "memory_bytes": {"value": 1000000000, "source": "test"}, "memory_bandwidth": {"value": 1e11, "source": "test"}})");
  const Outcome outcome = forerun("devices --device-file " + device.path());
  // Incomplete on purpose: the message names the file and the first field that is missing.
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find(device.path()), std::string::npos) << outcome.err;
}

TEST(Cli, ListsModelsAndDevices) {
  EXPECT_NE(forerun("zoo").out.find("efficientnet_b0"), std::string::npos);
  EXPECT_NE(forerun("zoo vit_b_16").out.find("patch"), std::string::npos);
  const Outcome devices = forerun("devices --json");
  EXPECT_EQ(devices.code, 0);
  int count = 0;
  std::istringstream lines(devices.out);
  for (std::string line; std::getline(lines, line); ++count) EXPECT_TRUE(nlohmann::json::accept(line));
  EXPECT_GE(count, 16);
  EXPECT_NE(devices.out.find(R"("compute_capability":"9.0")"), std::string::npos);
  EXPECT_NE(forerun("devices").out.find(" CC "), std::string::npos);
}

// Every name that is listed can be given back.
TEST(Cli, ListsLinks) {
  EXPECT_NE(forerun("devices --links").out.find("hdr"), std::string::npos);
  EXPECT_NE(forerun("devices --links").out.find("] IEEE 802.3 line rates"), std::string::npos);
  std::istringstream lines(forerun("devices --links --json").out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const nlohmann::json link = nlohmann::json::parse(line);
    EXPECT_GT(link.at("bandwidth_source").get<std::string>().size(), 10U) << line;
    EXPECT_GT(link.at("latency_source").get<std::string>().size(), 10U) << line;
    const std::string name = link.at("aliases").at(0);
    EXPECT_EQ(forerun("scale gpt2_small --gpus 16 --node 8 --micro-batch 2 --network " + name).code, 0) << name;
  }
  EXPECT_GE(count, 10);
}

TEST(Cli, SaysWhichPredictorsCanBeTrained) {
  const Outcome listed = forerun("train");
  EXPECT_EQ(listed.code, 0);
  EXPECT_NE(listed.out.find("hybrid"), std::string::npos) << listed.out;
}

// A range around the time, and no op of a common network unlike all that were measured.
TEST(Cli, PredictsARange) {
  const auto json = nlohmann::json::parse(forerun("predict resnet50 --batch 128 --json").out);
  EXPECT_LT(json["iter_low_ms"], json["iter_ms"]);
  EXPECT_GT(json["iter_high_ms"], json["iter_ms"]);
  EXPECT_GT(json["measured_share"], 0.9);
  const auto elsewhere = nlohmann::json::parse(forerun("predict resnet50 --batch 128 --gpu a100_80gb --json").out);
  const auto width = [](const nlohmann::json& p) {
    return p["iter_high_ms"].get<double>() / p["iter_low_ms"].get<double>();
  };
  ASSERT_NE(json["bound"], "host");
  EXPECT_GT(width(elsewhere), width(json));
}

TEST(Cli, HelpTeaches) {
  const Outcome help = forerun("--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("forerun predict resnet50"), std::string::npos);
  EXPECT_NE(forerun("predict --help").out.find("--optimizer"), std::string::npos);
  EXPECT_NE(forerun("zoo check --help").out.find("FILE"), std::string::npos);
}

}  // namespace
