// Every verb that takes a file, given every kind of file: it is taken, or refused with what it is and which verb takes
// it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/program_outcome.h"
#include "ingest/importers.h"

namespace forerun::cli {
namespace {

namespace fs = std::filesystem;

const std::string kTree = FORERUN_DATA_DIR "/../";

struct SampleFile {
  const char* path;
  FileKind kind;
};

constexpr SampleFile kSamples[] = {
    {"examples/onnx/small_cnn.onnx", FileKind::onnx_model},
    {"tests/data/run1.jsonl.zst", FileKind::records},
    {"tests/data/capture.jsonl", FileKind::records},
    {"tests/corpus/published_tables/resources.jsonl", FileKind::resource_records},
    {"data/h200/whatif_traces/gnmt.base.trace.json.zst", FileKind::profiler_trace},
    {"tests/corpus/execution_trace/nested.json", FileKind::execution_trace},
    {"tests/corpus/execution_trace/chakra.et", FileKind::execution_trace},
    {"data/devices/h100_sxm.json", FileKind::device},
    {"examples/jobs.csv", FileKind::job_table},
    {"tests/corpus/sniff/model_config", FileKind::model_config},
};

struct FileVerb {
  const char* verb;
  const char* before;  // of the path
  const char* behind;
};

constexpr FileVerb kFileVerbs[] = {
    {"predict", "predict ", ""},
    {"fit", "fit ", " --brief"},
    {"compare", "compare ", " --gpus h200,t4"},
    {"sweep", "sweep ", " --over batch=1,2"},
    {"scale", "scale ", " --gpus 2 --micro-batch 2"},
    {"whatif", "whatif ", " --apply cuda_graphs"},
    {"trace", "trace --no-path ", ""},
    {"replay", "replay ", ""},
    {"data", "data list ", ""},
    {"zoo check", "zoo check ", ""},
};

// The samples' first bytes stand behind a byte in the corpus of some fuzzers; copies without it lie in a folder.
std::string sample_copy(const fs::path& folder, const SampleFile& sample, const std::string& name) {
  std::ifstream file(kTree + sample.path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (sample.kind == FileKind::resource_records) bytes.erase(0, bytes.find('{'));
  std::ofstream(folder / name, std::ios::binary) << bytes;
  return (folder / name).string();
}

const char* name_of(FileKind kind) {
  for (const Importer& importer : importers()) {
    if (importer.kind == kind) return importer.name;
  }
  return "?";
}

// Several runs are no one model, and a user's own model is none that the zoo could be checked against.
bool needs_other_records(const FileVerb& verb, const SampleFile& sample) {
  const std::string_view name = verb.verb;
  const bool capture = std::string_view(sample.path).ends_with("capture.jsonl");
  if (sample.kind != FileKind::records) return false;
  return capture ? name == "zoo check" : name == "fit" || name == "sweep" || name == "compare";
}

class FileKinds : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("forerun_file_kinds_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(FileKinds, AreTakenOrRefusedWithTheVerbThatTakesThem) {
  for (const SampleFile& sample : kSamples) {
    // Under a name that says nothing, or something else. A file that is taken is a whole answer: one name for each verb.
    constexpr std::array kNames = {"sample", "sample.onnx", "sample.json"};
    for (size_t named = 0; named < kNames.size(); ++named) {
      const std::string path = sample_copy(folder_, sample, kNames[named]);
      for (size_t asked = 0; asked < std::size(kFileVerbs); ++asked) {
        const FileVerb& verb = kFileVerbs[asked];
        if (takes(verb.verb, sample.kind) && asked % kNames.size() != named) continue;
        if (needs_other_records(verb, sample)) continue;
        const Outcome outcome = forerun_outcome(verb.before + path + verb.behind);
        const bool as_records = std::string(verb.verb) == "data" && sample.kind == FileKind::resource_records;
        if (takes(verb.verb, sample.kind) || as_records) {
          EXPECT_EQ(outcome.out.find("taken here"), std::string::npos) << verb.verb << " " << outcome.out;
          if (!as_records) {
            EXPECT_EQ(outcome.code, 0) << verb.verb << " " << sample.path << "\n" << outcome.out;
          }
          continue;
        }
        EXPECT_EQ(outcome.code, 1) << verb.verb << " " << sample.path << "\n" << outcome.out;
        const std::string refused = path + ": is " + name_of(sample.kind) + "; ";
        EXPECT_NE(outcome.out.find(refused), std::string::npos) << verb.verb << " " << outcome.out;
        EXPECT_EQ(outcome.out.find("did you mean"), std::string::npos) << verb.verb << " " << outcome.out;
      }
    }
  }
}

TEST_F(FileKinds, ARefusalNamesTheVerbs) {
  const std::string trace = kTree + "data/h200/whatif_traces/gnmt.base.trace.json.zst";
  EXPECT_NE(forerun_outcome("predict " + trace).out.find("forerun trace, replay and whatif take it"),
            std::string::npos);
  EXPECT_NE(forerun_outcome("whatif --all " + kTree + "tests/data/run1.jsonl.zst").out.find("forerun predict, fit"),
            std::string::npos);
  EXPECT_NE(forerun_outcome("trace " + kTree + "tests/corpus/sniff/model_config").out.find("forerun predict, fit"),
            std::string::npos);
  EXPECT_NE(forerun_outcome("predict " + kTree + "data/devices/l4.json").out.find("--device-file"), std::string::npos);
}

TEST_F(FileKinds, WhatIsThereIsNeverAnsweredWithTheZoosNames) {
  std::ofstream(folder_ / "resnet5") << "text";
  std::ofstream(folder_ / "nothing.onnx") << "";
  const std::string there = "cd " + folder_.string() + " && " + FORERUN_PROGRAM + " ";
  for (const char* call : {"predict resnet5", "fit resnet5", "whatif resnet5 --apply amp"}) {
    const Outcome outcome = outcome_of(there + call + " 2>&1");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_NE(outcome.out.find("resnet5: is no kind of file"), std::string::npos) << outcome.out;
  }
  for (const char* call : {"predict nothing.onnx", "fit ./nothing.onnx", "whatif nothing.onnx --apply amp"}) {
    EXPECT_NE(outcome_of(there + call + " 2>&1").out.find("the file is empty"), std::string::npos) << call;
  }
  for (const char* call : {"predict model.onnx", "predict runs/x", "fit no.json", "whatif a.gz --apply amp",
                           "trace no.json", "replay no.json", "data list no.jsonl"}) {
    const Outcome outcome = outcome_of(there + call + " 2>&1");
    EXPECT_EQ(outcome.code, 1) << call;
    EXPECT_EQ(outcome.out.find("did you mean"), std::string::npos) << outcome.out;
  }
  fs::create_directories(folder_ / "resnet18");  // a name of the zoo is one wherever it is asked for
  EXPECT_EQ(outcome_of(there + "predict resnet18 --batch 2 2>&1").code, 0);
  EXPECT_NE(outcome_of(there + "predict ./resnet18 2>&1").out.find("is a folder"), std::string::npos);
}

}  // namespace
}  // namespace forerun::cli
