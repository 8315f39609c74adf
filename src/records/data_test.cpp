// Data sets of record files: counted, checked, merged and exported.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/line_reader.h"
#include "base/line_writer.h"
#include "ingest/capture/test_records.h"
#include "records/data_check.h"
#include "records/data_files.h"
#include "records/data_merge.h"
#include "records/data_noise.h"
#include "records/data_summary.h"
#include "report/data_export.h"
#include "report/data_noise.h"
#include "report/data_rows.h"
#include "report/data_summary.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json run(const std::string& id, const std::string& family = "mlp") {
  json record = small_record_2();
  record["id"] = id;
  record["family"] = family;
  record["args"]["id"] = id;  // a configuration of its own
  return record;
}

json unfinished(const std::string& id, const std::string& status) {
  json record = run(id);
  for (const char* field : {"ops", "tensors", "kernels", "mem", "time_ms", "params", "alloc_trace"})
    record.erase(field);
  record["status"] = status;
  return record;
}

json sample(const std::string& id) {
  json record = small_sample();
  record["id"] = id;
  return record;
}

std::string lines(const std::vector<json>& records) {
  std::string text;
  for (const json& record : records) text += record.dump() + "\n";
  return text;
}

class Data : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) / ("data_test_" + std::to_string(getpid())) / test->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static std::vector<json> read(const std::string& path) {
    auto reader = LineReader::open(path);
    EXPECT_TRUE(reader.ok());
    std::vector<json> records;
    while (true) {
      const auto line = reader->next();
      EXPECT_TRUE(line.ok()) << line.error().message();
      if (!line.ok() || !line->has_value()) return records;
      records.push_back(json::parse(**line));
    }
  }

  // All problems of a check, as "kind record: what".
  DataCheck check(const std::vector<std::string>& files) {
    found_.clear();
    auto checked = check_data(
        files,
        [&](const DataProblem& p) {
          found_.push_back(std::to_string(static_cast<int>(p.kind)) + " " + std::to_string(p.line) + ": " + p.what);
        },
        [&](const Error& error) { found_.push_back("file: " + error.what); });
    EXPECT_TRUE(checked.ok());
    return *checked;
  }

  fs::path folder_;
  std::vector<std::string> found_;
};

TEST_F(Data, FindsRecordFilesBelowFolders) {
  write("b.jsonl", "");
  write("a.jsonl.gz", "");
  write("deep/c.jsonl.zst", "");
  write("notes.json", "");
  write("b.jsonl.partial", "");
  const auto files = record_files({folder_.string(), path("b.jsonl"), path("notes.json")});
  ASSERT_TRUE(files.ok()) << files.error().message();
  EXPECT_EQ(*files, (std::vector<std::string>{path("a.jsonl.gz"), path("b.jsonl"), path("deep/c.jsonl.zst"),
                                              path("notes.json")}))
      << "a file that is named counts whatever its name, and only once";
  EXPECT_FALSE(record_files({path("none.jsonl")}).ok());
  fs::create_directories(folder_ / "empty");
  const auto empty = record_files({path("empty")});
  ASSERT_FALSE(empty.ok());
  EXPECT_EQ(empty.error().where, path("empty"));
}

TEST_F(Data, SummarizesWhatThereIs) {
  json near = run("near", "vgg");
  near["mem"]["device_used"] = 9500;
  json host = run("host", "vgg");
  host["time_ms"]["pipelined_median"] = 0.018;  // of which the GPU is busy for 0.0165 ms
  json gpu = run("gpu", "resnet");
  gpu["time_ms"]["pipelined_median"] = 0.0166;
  gpu["mem"]["device_used"] = 5000;
  gpu["profile"]["aligned"] = false;
  gpu["kernels"]["op"] = {0, 1, 1, 2};
  json twin = gpu;
  twin["id"] = "twin";
  json capture = run("captured", "capture");
  for (const char* field : {"status", "mem", "time_ms", "kernels", "profile", "host_us", "alloc_trace"}) {
    capture.erase(field);
  }
  json capture2 = capture;
  capture2["id"] = "captured too";
  json failed = sample("s3");
  failed["status"] = "failed";
  const std::string a = write("a.jsonl", lines({near, host, gpu, twin, gpu, capture, capture2}));
  const std::string b = write("b.jsonl", lines({{{"schema", "env/1"}, {"gpu", "x"}},
                                                sample("s1"),
                                                sample("s2"),
                                                failed,
                                                sample("s1"),
                                                unfinished("o", "oom"),
                                                unfinished("f", "failed")}) +
                                             "{\"schema\":\"run/2\",\"id\":\"to");
  write("split.json", R"({"train": ["resnet"], "test": ["vgg", "vit"], "ood": ["mlp"]})");
  const auto summary = summarize_data({a, b});
  ASSERT_TRUE(summary.ok()) << summary.error().message();
  const FamilySummary all = summary->all();
  EXPECT_EQ(all.records, 9);
  EXPECT_EQ(all.ok, 5);
  EXPECT_EQ(all.oom, 1);
  EXPECT_EQ(all.failed, 1);
  EXPECT_EQ(all.near_limit, 2) << "at 95 % and at 90 % of the GPU's memory";
  EXPECT_EQ(all.gpu_bound, 4);
  EXPECT_EQ(all.host_bound, 1);
  EXPECT_EQ(summary->families.at("vgg").split, "test");
  EXPECT_EQ(summary->families.at("mlp").split, "ood");
  EXPECT_EQ(summary->families.at("capture").split, "");
  EXPECT_EQ(summary->splits, (Counts{{"train", 3}, {"test", 2}, {"ood", 2}, {"in none", 2}}));
  EXPECT_EQ(summary->statuses, (Counts{{"ok", 5}, {"oom", 1}, {"failed", 1}, {"captured", 2}}));
  EXPECT_EQ(summary->layouts, (Counts{{"channels_last", 9}}));
  EXPECT_EQ(summary->samples, 4);
  EXPECT_EQ(summary->dtypes, (Counts{{"bfloat16", 4}}));
  EXPECT_EQ(summary->sample_statuses, (Counts{{"ok", 3}, {"failed", 1}}));
  EXPECT_EQ(summary->same_id.count, 2) << "gpu, and s1";
  EXPECT_EQ(summary->same_id.examples, (std::vector<std::string>{"gpu", "s1"}));
  EXPECT_EQ(summary->same_configuration.examples, (std::vector<std::string>{"twin"})) << "captures are not compared";
  EXPECT_EQ(summary->not_aligned, 3);
  EXPECT_EQ(summary->mostly_unmatched.count, 2);
  EXPECT_NEAR(summary->unmatched_us / summary->gpu_us, 2.0 / (5 * 16.5), 1e-12);
  EXPECT_EQ(summary->torn, 1);
  EXPECT_EQ(summary->broken, 0);
  EXPECT_NE(to_text(*summary).find("9 iteration records of 4 families and 4 op samples in 2 files"), std::string::npos);
  EXPECT_EQ(json::parse(to_json(*summary))["runs"]["gpu_bound"], 4);

  write("split.json", R"({"train": "resnet"})");
  EXPECT_FALSE(summarize_data({a, b}).ok());
}

TEST_F(Data, NoiseComparesRepeatsWithTheFirst) {
  json first = run("a"), again = first, other = run("b"), full = unfinished("c", "oom");
  again["id"] = "a2";
  again["time_ms"]["pipelined_median"] = 1.5 * first["time_ms"]["pipelined_median"].get<double>();
  full["args"] = first["args"];
  write("runs.jsonl", lines({first, other, again, full}));
  const auto noise = noise_of_data({path("runs.jsonl")});
  ASSERT_TRUE(noise) << noise.error().message();
  EXPECT_EQ(noise->configurations, 2);
  EXPECT_EQ(noise->repeats, 2);
  EXPECT_EQ(noise->other_status, 1);
  for (const auto& [key, differences] : noise->differences) {
    ASSERT_EQ(differences.size(), 1U) << name_of(key.second);
    EXPECT_NEAR(differences[0], key.second == NoiseFigure::iteration ? 0.4 : 0.0, 1e-12) << name_of(key.second);
  }
  EXPECT_GE(noise->differences.size(), 2U);
}

TEST_F(Data, CheckTakesGoodRecords) {
  json old = small_record();
  old["mem"]["peak_reserved"] = 2000;
  const DataCheck result = check({write("a.jsonl", lines({run("a"), old, unfinished("o", "oom"), sample("s")}))});
  EXPECT_TRUE(result.good());
  EXPECT_EQ(result.runs, 3);
  EXPECT_EQ(result.samples, 1);
  EXPECT_TRUE(found_.empty()) << found_.front();
}

TEST_F(Data, CheckSaysWhatIsBrokenAndGoesOn) {
  std::vector<json> bad(7, run("x"));
  for (size_t i = 0; i < bad.size(); ++i) bad[i]["id"] = "x" + std::to_string(i);
  bad[0]["time_ms"]["pipelined_median"] = 0;
  bad[1]["kernels"]["op"][0] = 17;
  bad[2]["frees"]["op"][0] = 1;
  bad[3]["alloc_trace"]["action"] = "SffrfX";
  bad[4]["mem"]["peak_reserved"] = 10;
  bad[5]["kernels"]["ns"] = {0, 0, 0, 0};
  bad[6]["schema"] = "run/7";
  const std::string file =
      write("a.jsonl", lines(bad) + "nonsense\n" + lines({run("good"), run("good")}) + "{\"id\": ");
  const std::string cut = write("b.jsonl.gz", std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03\xab", 11));
  const DataCheck result = check({file, cut});
  EXPECT_FALSE(result.good());
  EXPECT_EQ(result.broken, 8);
  EXPECT_EQ(result.torn, 1);
  EXPECT_EQ(result.warnings, 1);
  EXPECT_EQ(result.unreadable, 1);
  EXPECT_EQ(result.runs, 2);
  const std::vector<std::string> expected = {
      "0 1: time_ms.pipelined_median is 0",
      "0 2: a kernel names op 17 of 3",
      "0 3: without profiler marks, op 1 (aten.mm.default): input 1 uses storage 2, freed before op 1",
      "0 4: event 1 of alloc_trace frees block 0, which was never allocated",
      "0 5: mem.peak_allocated (1000) is more than peak_reserved (10)",
      "0 6: its kernels take no time",
      "0 7: schema is \"run/7\"; known: run/1, run/2, run/3, op/1, env/1",
      "0 8: the record is not a JSON object",
      "2 10: a record before it has the same id",
      "1 11: the last line is torn",
      "file: the gzip data ends too early"};
  ASSERT_EQ(found_.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(found_[i].starts_with(expected[i])) << found_[i];
}

TEST_F(Data, ALastLineWithoutAnEndCountsIfItIsWhole) {
  const DataCheck whole = check({write("a.jsonl", run("a").dump())});
  EXPECT_EQ(whole.runs, 1);
  json wrong = run("b");
  wrong["kernels"]["op"][0] = 17;
  const DataCheck broken = check({write("b.jsonl", wrong.dump())});
  EXPECT_EQ(broken.broken, 1) << "whole, and wrong: not torn";
  EXPECT_EQ(broken.torn, 0);
}

TEST_F(Data, MergeKeepsEachIdOnceAndPrefersSuccess) {
  json first = run("a");
  first["note"] = "first";
  json second = run("a");
  second["note"] = "second";
  json same_name = sample("a");
  const std::string one =
      write("1.jsonl", lines({first, unfinished("o", "oom"), unfinished("f", "failed"), unfinished("n", "oom")}));
  const std::string two = write("2.jsonl", lines({second, run("o"), run("f"), unfinished("n", "failed"), same_name}) +
                                               "nonsense\n{\"schema\":\"run/2\",\"id");
  for (const char* name : {"out.jsonl", "out.jsonl.gz", "out.jsonl.zst"}) {
    std::vector<DataProblem> problems;
    MergeOptions options;
    options.problem = [&](const DataProblem& problem) { problems.push_back(problem); };
    const auto merged = merge_data(path(name), {one, two}, options);
    ASSERT_TRUE(merged.ok()) << merged.error().message();
    EXPECT_EQ(merged->runs, 4);
    EXPECT_EQ(merged->samples, 1);
    EXPECT_EQ(merged->repeats, 4);
    EXPECT_EQ(merged->replaced, 2);
    EXPECT_EQ(merged->torn, 1);
    EXPECT_EQ(merged->broken, 1);
    EXPECT_EQ(problems.size(), 2U);
    const auto records = read(path(name));
    ASSERT_EQ(records.size(), 5U);
    EXPECT_EQ(records[0]["note"], "first");
    EXPECT_EQ(records[1]["id"], "n");
    EXPECT_EQ(records[1]["status"], "oom") << "no success: the first stays";
    EXPECT_EQ(records[2]["status"], "ok");
    EXPECT_EQ(records[3]["id"], "f");
    EXPECT_EQ(records[4]["schema"], "op/1");

    EXPECT_FALSE(merge_data(path(name), {one}, options).ok()) << "the file is there already";
    options.overwrite = true;
    ASSERT_TRUE(merge_data(path(name), {path(name), one}, options).ok()) << "it may be merged into itself";
    EXPECT_EQ(read(path(name)).size(), 5U);
  }
}

TEST_F(Data, MergeKeepsSamplesBehindTheirEnvironment) {
  const json here = {{"schema", "env/1"}, {"gpu", "here"}};
  const json there = {{"schema", "env/1"}, {"gpu", "there"}};
  const std::string one = write("1.jsonl", lines({here, sample("a"), run("r"), there, sample("b"), here}));
  const std::string two = write("2.jsonl", lines({there, sample("c"), sample("a")}));
  const std::string three = write("3.jsonl", "\n" + lines({sample("d")}));
  ASSERT_TRUE(merge_data(path("out.jsonl"), {one, two, three}, {}).ok());
  std::vector<std::string> got;
  for (const json& record : read(path("out.jsonl"))) {
    got.push_back(record.contains("id") ? record["id"].get<std::string>() : record.value("gpu", "?"));
  }
  EXPECT_EQ(got, (std::vector<std::string>{"here", "a", "r", "there", "b", "c", "?", "d"}));
}

TEST_F(Data, MergeCompactsAndKeepsWhatItDoesNotKnow) {
  json old = small_record();
  old["novel"] = {1, 2};
  json broken = small_record();
  broken["id"] = "broken";
  broken["ops"][1][3][0] = 7;
  const std::string one = write("1.jsonl", lines({old, broken, run("new")}));
  int problems = 0;
  MergeOptions options;
  options.compact = true;
  options.problem = [&](const DataProblem& /*problem*/) { ++problems; };
  const auto merged = merge_data(path("out.jsonl"), {one}, options);
  ASSERT_TRUE(merged.ok()) << merged.error().message();
  EXPECT_EQ(merged->compacted, 2);
  EXPECT_EQ(merged->runs, 2);
  EXPECT_EQ(merged->broken, 1);
  EXPECT_EQ(problems, 1);
  const auto records = read(path("out.jsonl"));
  ASSERT_EQ(records.size(), 2U) << "a broken record is left out";
  EXPECT_EQ(records[0]["schema"], "run/3");
  EXPECT_EQ(records[0]["novel"], old["novel"]);
  EXPECT_TRUE(records[0]["ops"].is_object());
  EXPECT_EQ(records[1]["schema"], "run/3");
  EXPECT_EQ(records[1]["env"], run("new")["env"]);
}

TEST_F(Data, MergeLeavesNothingBehindWhereAFileBreaksOff) {
  const std::string cut = write("b.jsonl.gz", std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03\xab", 11));
  EXPECT_FALSE(merge_data(path("out.jsonl"), {cut}, {}).ok());
  EXPECT_FALSE(fs::exists(path("out.jsonl")));
}

// What merge writes, check takes.
TEST_F(Data, MergeLeavesBrokenRecordsOut) {
  std::string deep;
  for (int i = 0; i < 3000; ++i) deep += "{\"a\":";
  deep += "1" + std::string(3000, '}');
  json implausible_times = run("x");
  implausible_times["time_ms"]["pipelined_median"] = 0;
  json second = run("a");
  second["note"] = "second";
  json broken_first = run("a");
  broken_first["kernels"]["op"][0] = 17;
  const json bad_sample = {{"schema", "op/1"}, {"id", "s"}};
  const std::string one = write("1.jsonl", "{}\n" + deep + "\n" + lines({broken_first, second, implausible_times}));
  const std::string two = write("2.jsonl", lines({bad_sample, sample("t")}));
  std::vector<std::string> places;
  MergeOptions options;
  options.problem = [&](const DataProblem& problem) {
    places.push_back(fs::path(problem.file).filename().string() + " " + std::to_string(problem.line));
  };
  const auto merged = merge_data(path("out.jsonl"), {one, two}, options);
  ASSERT_TRUE(merged.ok()) << merged.error().message();
  EXPECT_EQ(merged->runs, 1);
  EXPECT_EQ(merged->samples, 1);
  EXPECT_EQ(merged->broken, 5);
  EXPECT_EQ(merged->repeats, 0) << "a broken record does not take a good one's place";
  EXPECT_EQ(places, (std::vector<std::string>{"1.jsonl 1", "1.jsonl 2", "1.jsonl 3", "1.jsonl 5", "2.jsonl 1"}));
  EXPECT_EQ(read(path("out.jsonl"))[0]["note"], "second");
  EXPECT_TRUE(check({path("out.jsonl")}).good());
}

TEST_F(Data, NothingIsNoAnswer) {
  const json environment = {{"schema", "env/1"}, {"gpu", "here"}};
  for (const std::string& text : {std::string(), std::string("\n\n \n"), std::string(4096, '\0'),
                                  run("a").dump().substr(0, 300), lines({environment})}) {
    const std::string file = write("nothing.jsonl", text);
    const DataCheck result = check({file});
    EXPECT_FALSE(result.good()) << text.substr(0, 20);
    EXPECT_EQ(result.empty, 1);
    const auto merged = merge_data(path("out.jsonl"), {file}, {});
    ASSERT_FALSE(merged.ok());
    EXPECT_NE(merged.error().what.find("holds no records"), std::string::npos) << merged.error().message();
    EXPECT_FALSE(fs::exists(path("out.jsonl")));
    for (const ExportRows rows : {ExportRows::runs, ExportRows::ops, ExportRows::samples}) {
      const auto line = [](std::string_view /*text*/) -> Status {
        ADD_FAILURE() << "there is nothing to write";
        return {};
      };
      EXPECT_FALSE(export_data({file}, rows, line, [](const DataProblem& /*problem*/) {}).ok());
    }
  }
  EXPECT_EQ(check({write("nothing.jsonl", ""), write("some.jsonl", lines({run("a")}))}).empty, 1);
}

TEST_F(Data, ExportsRunsOpsAndSamples) {
  json record = run("a,\"b\"");
  record["args"] = json::object();
  const std::string file = write("a.jsonl", lines({record, unfinished("o", "oom"), sample("s")}));
  const auto exported = [&](ExportRows rows) {
    std::vector<std::string> text;
    const Status status = export_data(
        {file}, rows,
        [&](std::string_view line) {
          text.emplace_back(line);
          return Status();
        },
        [](const DataProblem& problem) { ADD_FAILURE() << problem.what; });
    EXPECT_TRUE(status.ok());
    return text;
  };
  const auto runs = exported(ExportRows::runs);
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_TRUE(runs[1].starts_with("\"a,\"\"b\"\"\",mlp,{},flat,2,3,0,7,generic,amp_bf16,SGD,fused,channels_last,2,"))
      << runs[1];
  EXPECT_NE(runs[2].find(",oom,"), std::string::npos);
  EXPECT_TRUE(runs[2].ends_with(",,,,,,,,,,")) << "nothing was measured: " << runs[2];

  const auto ops = exported(ExportRows::ops);
  ASSERT_EQ(ops.size(), 4U);
  EXPECT_EQ(ops[2],
            "\"a,\"\"b\"\"\",1,aten.mm.default,backward,fc,\"float32[3,2] float32[2,7]\",\"float32[3,7]\",{},5.000,2");

  const auto samples = exported(ExportRows::samples);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[1],
            "s,gemm,aten.mm.default,tf32,\"int64[3] bfloat16[8,4] bfloat16[4,2](1,4) -\",\"bfloat16[8,2]\","
            "\"{\"\"alpha\"\": 2}\",ok,4.2500,0.0300,2,gemm_kernel;reduce,1024");
}

TEST_F(Data, ExportStopsWhereNothingCanBeWritten) {
  const std::string file = write("a.jsonl", lines({run("a"), run("b")}));
  int asked = 0;
  const Status status = export_data(
      {file}, ExportRows::runs,
      [&](std::string_view /*line*/) -> Status {
        ++asked;
        return Error{"full", "", ""};
      },
      [](const DataProblem& /*problem*/) {});
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace forerun
