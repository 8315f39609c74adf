#include "ingest/importers.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/line_writer.h"
#include "base/needs_dataset.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;
using Kind = FileKind;

const std::string kCorpus = FORERUN_DATA_DIR "/../tests/corpus/";
const std::string kTree = FORERUN_DATA_DIR "/../";

Kind kind_of(const std::string& path) {
  const auto kind = sniff_file(path);
  EXPECT_TRUE(kind.ok()) << kind.error().message();
  return kind.ok() ? *kind : Kind::unknown;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class SniffedFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("forerun_sniffed_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return (folder_ / name).string();
  }
  // The bytes and a line end, compressed as the name says.
  [[nodiscard]] std::string packed(const std::string& name, const std::string& bytes) const {
    const std::string path = (folder_ / name).string();
    auto writer = LineWriter::create(path, {.overwrite = true, .zstd_level = 3});
    EXPECT_TRUE(writer.ok() && writer->write(bytes).ok() && writer->finish().ok());
    EXPECT_NE(bytes_of(path), bytes + "\n") << "not packed";
    return path;
  }
  fs::path folder_;
};

const std::map<std::string, Kind>& real_files() {
  static const std::map<std::string, Kind> kFiles = {
      {"tests/data/run1.jsonl.zst", Kind::records},
      {"data/h200/first-starter.jsonl.zst", Kind::records},
      {"data/h200/ops-1.jsonl.zst", Kind::records},
      {"tests/corpus/run_record/op_samples.jsonl", Kind::records},
      {"tests/corpus/run_record/deep_nesting.jsonl", Kind::records},
      {"tests/corpus/run_record/huge_shape.jsonl", Kind::records},
      {"data/h200/whatif_traces/gnmt.base.trace.json.zst", Kind::profiler_trace},
      {"tests/corpus/kineto/small.json", Kind::profiler_trace},
      {"tests/corpus/kineto/broken_strings.json", Kind::profiler_trace},
      {"tests/corpus/kineto/old_2021.json", Kind::profiler_trace},
      {"tests/corpus/kineto/odd_values.json", Kind::profiler_trace},
      {"tests/corpus/kineto/trailing_comma.json", Kind::profiler_trace},
      {"tests/corpus/execution_trace/chakra.et", Kind::execution_trace},
      {"tests/corpus/execution_trace/chakra_cut.et", Kind::execution_trace},
      {"tests/corpus/execution_trace/nested.json", Kind::execution_trace},
      {"tests/corpus/execution_trace/flat.json", Kind::execution_trace},
      {"examples/onnx/small_cnn.onnx", Kind::onnx_model},
      {"examples/onnx/transformer_block.onnx", Kind::onnx_model},
      {"tests/corpus/onnx/opset6.onnx", Kind::onnx_model},
      {"tests/corpus/onnx/lstm.onnx", Kind::onnx_model},
      {"tests/corpus/onnx/truncated.onnx", Kind::onnx_model},
      {"data/devices/h200.json", Kind::device},
      {"data/devices/links.json", Kind::device},
      {"examples/jobs.csv", Kind::job_table},
      {"tests/corpus/sniff/sacct", Kind::job_table},
      {"tests/corpus/sniff/model_config", Kind::model_config},
      {"data/h200/split.json", Kind::unknown},
      {"README.md", Kind::unknown},
      {"run", Kind::unknown},
      {"tests/corpus/execution_trace/empty", Kind::empty},
      {"data/h200", Kind::folder},
  };
  return kFiles;
}

TEST(Importers, TellRealFilesByTheirContent) {
  for (const auto& [path, kind] : real_files()) EXPECT_EQ(kind_of(kTree + path), kind) << path;
}

TEST(Importers, TellEveryTraceOfOthers) {
  NEEDS_DATASET(folder, "traces");
  EXPECT_EQ(kind_of(folder + "/chakra/chakra.0.et.gz"), Kind::execution_trace);
  EXPECT_EQ(kind_of(folder + "/param/resnet_et.json.gz"), Kind::execution_trace);
  EXPECT_EQ(kind_of(folder + "/param/dlrm_8ranks_et/dlrm_eg_0.json.gz"), Kind::execution_trace);
  EXPECT_EQ(kind_of(folder + "/hta/resnet50_v100_gpu_bound.json.gz"), Kind::profiler_trace);
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (!entry.is_regular_file() || !path.ends_with(".json.gz")) continue;
    const Kind kind = kind_of(path);
    EXPECT_TRUE(kind == Kind::profiler_trace || kind == Kind::execution_trace) << path;
  }
}

// The list has one sample of each kind at least, and a kind that is told never depends on how the file is packed or
// named.
TEST_F(SniffedFiles, NeitherNamesNorCompressionCount) {
  for (const auto& [path, kind] : real_files()) {
    if (kind == Kind::folder || path.ends_with(".gz") || path.ends_with(".zst")) continue;
    const std::string bytes = bytes_of(kTree + path);
    for (const char* name : {"a.onnx", "a.json", "a.jsonl", "a.csv", "a", "a.txt.gz"}) {
      EXPECT_EQ(kind_of(write(name, bytes)), kind) << path << " as " << name;
    }
    for (const char* name : {"packed.gz", "packed.zst"}) {
      fs::rename(packed(name, bytes), folder_ / "anything.onnx");
      EXPECT_EQ(kind_of((folder_ / "anything.onnx").string()), kind) << path << " in " << name;
    }
  }
}

TEST(Importers, TellSmallTexts) {
  EXPECT_EQ(sniff(""), Kind::empty);
  EXPECT_EQ(sniff(" \n\n\t"), Kind::empty);
  EXPECT_EQ(sniff("hello"), Kind::unknown);
  EXPECT_EQ(sniff("{}"), Kind::unknown);
  EXPECT_EQ(sniff("[]"), Kind::unknown);
  EXPECT_EQ(sniff("{"), Kind::unknown);
  EXPECT_EQ(sniff(R"({"id": "stripped of its schema"})"), Kind::records);
  EXPECT_EQ(sniff("\xEF\xBB\xBF{\"schema\": \"run/2\"}"), Kind::records) << "behind a byte order mark";
  EXPECT_EQ(sniff("broken\n{\"schema\":\"run/2\",\"id\":1}\n"), Kind::records) << "behind a broken line";
  EXPECT_EQ(sniff(R"({"schema": "resources/1", "id": "a"})"), Kind::resource_records);
  EXPECT_EQ(sniff(R"([ {"name": "a", "ph": "X", "ts")"), Kind::profiler_trace);
  EXPECT_EQ(sniff(R"([{"name": "a"}])"), Kind::unknown);
  EXPECT_EQ(sniff(R"({"schemaVersion": 1, "traceEvents": [{"name": "\"nodes\""}]})"), Kind::profiler_trace);
  EXPECT_EQ(sniff(R"({"displayTimeUnit": "ms", "other)"), Kind::profiler_trace) << "cut before its events";
  EXPECT_EQ(sniff(R"({"note": {"traceEvents": []}})"), Kind::unknown) << "a key of what lies deeper";
  EXPECT_EQ(sniff(R"({"note": "\"traceEvents\": [", "a": 1})"), Kind::unknown) << "a text that quotes it";
  EXPECT_EQ(sniff(R"({"schema": "1.0.1", "pid": 7)"), Kind::execution_trace);
  EXPECT_EQ(sniff("timestamp,duration,num_gpus\n"), Kind::job_table);
  EXPECT_EQ(sniff("\"id\", \"duration_a100\"\r\n"), Kind::job_table);
  EXPECT_EQ(sniff("model,batch,iter_ms\n"), Kind::unknown) << "predictions, not jobs";
  EXPECT_EQ(sniff("duration\n1\n"), Kind::unknown) << "one column is no table";
}

TEST(Importers, EveryKindIsTakenByAVerbOrSaysWhatToDo) {
  for (const Importer& importer : importers()) {
    EXPECT_TRUE(is_told(importer.kind)) << importer.name;
    EXPECT_NE(importer.verbs.empty(), std::string(importer.otherwise).empty()) << importer.name;
    const Error error = refused_file(importer.kind, "x", "no such verb");
    EXPECT_NE(error.what.find(importer.name), std::string::npos) << error.message();
    EXPECT_FALSE(error.remedy.empty()) << importer.name;
    const bool sampled = std::any_of(real_files().begin(), real_files().end(),
                                     [&](const auto& file) { return file.second == importer.kind; });
    EXPECT_TRUE(sampled || importer.kind == Kind::resource_records) << importer.name;
  }
}

TEST_F(SniffedFiles, FaultsAreErrorsThatNameTheFile) {
  const std::string cut = write("cut.gz", std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\x56", 12));
  const auto truncated = sniff_file(cut);
  ASSERT_FALSE(truncated.ok());
  EXPECT_EQ(truncated.error().where, cut);
  std::string header(512, '\0');  // of a tar member
  header.replace(0, 5, "a.csv").replace(257, 5, "ustar");
  const auto archive = sniff_file(write("archive", header));
  ASSERT_FALSE(archive.ok());
  EXPECT_NE(archive.error().what.find("tar archive"), std::string::npos);
  const auto missing = sniff_file((folder_ / "missing.json").string());
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().what.find("no such file"), std::string::npos);
  EXPECT_FALSE(sniff_file(write("zipped", "PK\x03\x04 and more")).ok());
}

TEST_F(SniffedFiles, PipesAreNotReadToBeTold) {
  const std::string path = (folder_ / "pipe").string();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(kind_of(path), Kind::stream);
}

TEST_F(SniffedFiles, FoldersGiveTheFilesThatAreNamedAsUsual) {
  fs::create_directories(folder_ / "deep");
  write("b.json.gz", "");
  write("deep/a.json", "");
  write("c.jsonl", "");
  const auto traces = files_below(folder_.string(), Kind::profiler_trace);
  ASSERT_TRUE(traces.ok());
  EXPECT_EQ(*traces, (std::vector<std::string>{(folder_ / "b.json.gz").string(), (folder_ / "deep/a.json").string()}));
  EXPECT_EQ(files_below(folder_.string(), Kind::records)->size(), 1U);
  const auto none = files_below((folder_ / "deep").string(), Kind::records);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().remedy.find("*.jsonl.gz"), std::string::npos) << none.error().message();
}

TEST(JsonOutline, ReadsKeysOfTextThatIsCutAnywhere) {
  const std::string text = R"({"a": {"deep": 1}, "b\"": "x, y", "c": [1, {"d": 2}], "e": -1.5})";
  const JsonOutline whole = json_outline(text);
  ASSERT_EQ(whole.fields.size(), 4U);
  EXPECT_EQ(whole.fields[1].key, "b\\\"");
  EXPECT_EQ(whole.text("b\\\""), "x, y");
  EXPECT_TRUE(whole.has("e"));
  EXPECT_FALSE(whole.has("deep") || whole.has("d"));
  EXPECT_EQ(whole.text("e"), "") << "no string";
  for (size_t length = 0; length < text.size(); ++length) {
    const JsonOutline cut = json_outline(std::string_view(text).substr(0, length));
    ASSERT_LE(cut.fields.size(), 4U);
    for (size_t i = 0; i < cut.fields.size(); ++i) EXPECT_EQ(cut.fields[i].key, whole.fields[i].key);
  }
}

}  // namespace
}  // namespace forerun
